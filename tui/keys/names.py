"""Keys as people read them: "ctrl+p" is Ctrl+P, "comma" is a comma."""

from __future__ import annotations

import contextlib
import unicodedata

from textual.keys import KEY_NAME_REPLACEMENTS

from .vocabulary import Key

_SHOWN = {
    "up": "\u2191", "down": "\u2193", "left": "\u2190", "right": "\u2192",
    "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End", "enter": "Enter",
    "escape": "Esc", "tab": "Tab", "space": "Space", "comma": ",", "full_stop": ".",
    "left_square_bracket": "[", "right_square_bracket": "]", "question_mark": "?",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "left_parenthesis": "(",
    "right_parenthesis": ")", "slash": "/", "plus": "+", "minus": "-", "apostrophe": "'",
    "backspace": "Backspace", "delete": "Del", "less_than_sign": "<", "greater_than_sign": ">",
}  # fmt: skip


def shown(key: str) -> str:
    """One key as people read it: "ctrl+p" is Ctrl+P, "comma" is a comma."""
    *held, last = key.split("+")
    name = _SHOWN.get(last) or sign_of(last) or last
    if (len(name) == 1 and held) or (name.startswith("f") and name[1:].isdigit()):
        name = name.upper()
    return "+".join([*(part.capitalize() for part in held), name])


def sign_of(key: str) -> str:
    """The sign that Textual's name of a key stands for: "slash" is a slash; empty for others.

    Textual's own `key_to_character` does not know those it has other names for (slash, plus).
    """
    if len(key) == 1:
        return key
    with contextlib.suppress(KeyError):
        sign = unicodedata.lookup(_UNICODE.get(key, key).replace("_", " ").upper())
        return sign if sign.isprintable() else ""
    return ""


_UNICODE = {
    other: name.replace("hyphen_minus", "hyphen-minus")
    for name, other in KEY_NAME_REPLACEMENTS.items()
}


def shown_keys(key: Key, separator: str = " ") -> str:
    """All keys of a row as people read them."""
    return separator.join(shown(name) for name in key.keys.split(","))
