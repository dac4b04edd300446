"""Every key of the console in one table.

The table makes the bindings, the footer, the entries of the command palette, the help screen and
the table in the README, so none of them can differ from the others. A key is named by its id in a
user's own key map (`App.set_keymap`).

`python -m thresher.tui.keys` prints the README's table.
"""

from __future__ import annotations

from .binding import bindings
from .names import shown, shown_keys, sign_of
from .readme import README_BEGIN, README_END, markdown
from .table import KEYS, grouped
from .vocabulary import TOGETHER, Group, Key, Where

__all__ = [
    "KEYS",
    "README_BEGIN",
    "README_END",
    "TOGETHER",
    "Group",
    "Key",
    "Where",
    "bindings",
    "grouped",
    "markdown",
    "shown",
    "shown_keys",
    "sign_of",
]
