"""Numbers with their nouns, as every sentence of ours says them."""

from __future__ import annotations


def count(number: int, one: str, many: str = "") -> str:
    """`1 item`, `1,200 items`; `many` where the plural is more than an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
