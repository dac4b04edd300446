"""How the C library keeps memory that is free: what a very long line took is given back at once.

glibc raises the size from which a block is mapped apart to that of the largest block that was ever
freed. After one line of 20 MB the next ones come from the heap, where small objects end up between
them, so their places stay taken. A fixed size keeps such blocks apart (mallopt(3)).
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
APART: Final = 4 << 20
"""Bytes of a block that is mapped apart: more than the pieces in which files are read."""
FREE: Final = 8 << 20
"""Free bytes at the end of the heap that are kept: else those pieces are fetched anew each time."""


def keep_large_blocks_apart() -> bool:
    """Fix both sizes for this process; False, and nothing is done, where there is no glibc."""
    if sys.platform != "linux":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(set_option(_M_MMAP_THRESHOLD, APART) and set_option(_M_TRIM_THRESHOLD, FREE))
