"""`python -m thresher.tui` is `thresher`."""

from __future__ import annotations

import sys

from .entry import main

sys.exit(main())
