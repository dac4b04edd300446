"""A strategy as plain data, and reading its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ....models import Budget


class StrategySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One strategy of a settings file: its name, its arguments, and (in .NET) its conditions."""

    strategy: str
    params: dict[str, Any] = {}
    trigger: str | dict[str, Any] | None = None
    target: str | dict[str, Any] | None = None


class Limits(msgspec.Struct, frozen=True):
    """The model's window and largest output in tokens; a window of None is unknown."""

    window: int | None
    max_output: int = 0

    @classmethod
    def of(cls, budget: Budget) -> Limits:
        """Those of a budget; a reserve for the answer counts like a max output."""
        return cls(budget.window.value, budget.room_for_output)

    @property
    def input_budget(self) -> int | None:
        """Window - max output; None when the window is unknown."""
        return None if self.window is None else self.window - self.max_output


class Arguments:
    """Takes named arguments one by one; whatever is left over in the end is an error.

    Every method raises ValueError for a value that cannot be.
    """

    def __init__(self, owner: str, given: Mapping[str, Any]) -> None:
        self._owner = owner
        self._left = dict(given)

    def whole(self, name: str, otherwise: int | None, *, least: int | None = None) -> int:
        """A whole number; `otherwise` None means that it must be given."""
        value = self._left.pop(name, otherwise)
        if type(value) is not int:
            raise self._wrong(name, value, "a whole number")
        if least is not None and value < least:
            raise self._wrong(name, value, f"at least {least}")
        return value

    def whole_or_none(
        self, name: str, otherwise: int | None, *, least: int | None = None
    ) -> int | None:
        """A whole number or nothing."""
        if self._left.get(name, otherwise) is None:
            self._left.pop(name, None)
            return None
        return self.whole(name, otherwise, least=least)

    def number(self, name: str, otherwise: float) -> float:
        """A number."""
        value = self._left.pop(name, otherwise)
        if type(value) not in (int, float):
            raise self._wrong(name, value, "a number")
        return float(value)

    def switch(self, name: str, otherwise: bool) -> bool:
        """True or false."""
        value = self._left.pop(name, otherwise)
        if type(value) is not bool:
            raise self._wrong(name, value, "true or false")
        return value

    def text(self, name: str, otherwise: str) -> str:
        """A text; nothing counts as empty."""
        value = self._left.pop(name, otherwise)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._wrong(name, value, "a text")
        return value

    def strategies(self) -> list[StrategySpec]:
        """The nested strategies; they must be given, be it an empty list."""
        value = self._left.pop("strategies", None)
        if value is None:
            raise ValueError(f"{self._owner} needs a list of strategies")
        try:
            return msgspec.convert(value, list[StrategySpec])
        except msgspec.ValidationError as error:
            raise ValueError(f"strategies of {self._owner}: {error}") from error

    def done(self) -> None:
        """Nothing more is taken."""
        if self._left:
            names = ", ".join(sorted(self._left))
            raise ValueError(f"{self._owner} has no argument {names}")

    def _wrong(self, name: str, value: object, wanted: str) -> ValueError:
        return ValueError(f"{name} of {self._owner} must be {wanted}, not {value!r}")
