"""`python -m thresher.tui.keys` prints the README's table of keys."""

from __future__ import annotations

import sys

from .readme import markdown

if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
