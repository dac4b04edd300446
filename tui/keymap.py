"""The user's own keys: checked against the key table, and the table as it then is.

A key map names ids of the table ("console.follow") and gives each one key or several, comma
separated. A key is written as people read it: `F`, `[`, `ctrl+g`, `f5`, `space`; a comma itself is
`comma`.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Mapping

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from thresher.core.errors import ThresherError
from thresher.core.text import clean_line

from .keys import KEYS, TOGETHER, Key

_HELD = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMES = {key.value.rpartition("+")[2] for key in Keys} | set(KEY_NAME_REPLACEMENTS.values())
_SAID = {"esc": "escape", "return": "enter", "pgup": "pageup", "pgdn": "pagedown", "del": "delete"}

Source = Callable[[str], str]
"""Says where a setting comes from, by its dotted name."""


def checked(
    keymap: Mapping[str, str], source: Source = lambda name: "The key map"
) -> dict[str, str]:
    """The key map in Textual's names. Raises ThresherError with one sentence for an id that is not
    in the table, a key that does not exist, and a key that would mean two things in one place."""
    made: dict[str, str] = {}
    known = {key.id: key for key in KEYS}
    for id, keys in keymap.items():
        where = source(f"keys.{id}")
        if id not in known:
            near = difflib.get_close_matches(id, known, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise ThresherError(
                "No such key",
                f"{where} sets keys.{clean_line(id, 60)}, and `thresher keys` lists no such id."
                f"{meant}",
            )
        made[id] = ",".join(_named(text, id, where) for text in keys.split(","))
    _require_one_meaning(made, source)
    return made


def _named(text: str, id: str, where: str) -> str:
    """One key in Textual's name."""
    *held, last = text.strip().split("+") if text.strip() != "+" else ["+"]
    held = [each.strip().lower() for each in held]
    last = last.strip()
    if len(last) == 1 and last.isprintable():
        name = last if last.isalnum() else _name_of(last)
    else:
        name = last.lower().replace(" ", "_")
        name = _SAID.get(name, name)
    known = len(name) == 1 or name in _NAMES or _is_character(name)
    if not known or any(each not in _HELD for each in held):
        shown = clean_line(text.strip(), 40) or "nothing"
        raise ThresherError(
            "No such key",
            f"{where} sets keys.{id} to {shown}, which is no key: write it as F, [, ctrl+g, f5 "
            "or space, several with commas between.",
        )
    return "+".join([*held, name])


def _name_of(sign: str) -> str:
    """Textual's name of a sign: "[" is left_square_bracket."""
    name = unicodedata.name(sign, sign).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


def _is_character(name: str) -> bool:
    try:
        unicodedata.lookup(name.replace("_", " ").upper())
    except KeyError:
        return False
    return True


def _require_one_meaning(keymap: Mapping[str, str], source: Source) -> None:
    rows = effective(keymap)
    for places in TOGETHER:
        bound: dict[str, Key] = {}
        for key in rows:
            if key.where not in places:
                continue
            for name in key.keys.split(","):
                other = bound.setdefault(name, key)
                if other is key:
                    continue
                mine, theirs = (key, other) if key.id in keymap else (other, key)
                raise ThresherError(
                    "Two meanings for a key",
                    f"{source(f'keys.{mine.id}')} sets keys.{mine.id} to {name}, which is "
                    f"{theirs.id} already ({theirs.tip}): give one of them another key.",
                )


def effective(keymap: Mapping[str, str]) -> tuple[Key, ...]:
    """The key table with the user's keys."""
    return tuple(key._replace(keys=keymap[key.id]) if key.id in keymap else key for key in KEYS)
