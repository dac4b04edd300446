"""`thresher models` and `thresher policies`: what the program knows, and who says so."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import App, Parameter
from rich.cells import cell_len

from thresher.core.errors import ThresherError

from ..figures import thousands
from ..spans import Line, Tone, column, span, wrap
from . import output
from .tables import Column, fields, table

if TYPE_CHECKING:
    from thresher.core.catalog import ModelFacts
    from thresher.core.compaction.policy import Policy

Json = Annotated[
    bool,
    Parameter(name="--json", negative="", show_default=False, help="Print JSON, one line each."),
]


def add_to(app: App) -> None:
    """Register the two commands."""
    app.command(models, help_epilogue="Example: thresher models gpt-5-mini")
    app.command(policies, help_epilogue="Example: thresher policies teaching")


# -- models ------------------------------------------------------------------------------------


def models(name: str | None = None, /, *, json: Json = False) -> int:
    """List the models whose window and prices are known, or tell everything about one.

    Parameters
    ----------
    name
        A model's name, as you would give it to --model.
    """
    from thresher.core.catalog import find
    from thresher.core.catalog import table as rows

    if name is None:
        _list_models(rows(), json)
        return 0
    row = find(name)
    if row is None:
        raise ThresherError("Unknown model", _no_model(name))
    if json:
        output.put_json(_model_record(row))
    else:
        output.put(fields(_model_words(row), output.columns()))
    return 0


def _list_models(rows: Sequence[ModelFacts], json: bool) -> None:
    if json:
        for row in rows:
            output.put_json(_model_record(row))
        return
    columns = (
        Column("model", least=12, tone=Tone.STRONG),
        Column("vendor", least=6),
        Column("window", right=True),
        Column("max output", right=True),
        Column("$ in", right=True),
        Column("$ cached", right=True),
        Column("$ out", right=True),
        Column("as of", tone=Tone.MUTED),
    )
    output.put(
        table(
            columns,
            [
                (
                    row.name,
                    row.vendor,
                    thousands(row.context_window),
                    thousands(row.max_output),
                    _price(row.price_input),
                    _price(row.price_cached_input),
                    _price(row.price_output),
                    row.as_of,
                )
                for row in rows
            ],
            output.columns(),
        )
    )
    output.say()
    output.say("Windows in tokens, prices in US dollars for a million tokens; ? is unknown.")


def _model_record(row: ModelFacts) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.structs.asdict(row)
    return record


def _model_words(row: ModelFacts) -> list[tuple[str, str]]:
    from thresher.core.models import resolve

    limits = resolve(row.name)
    above = row.price_holds_up_to
    return [
        ("model", row.name),
        ("also", ", ".join(row.aliases)),
        ("vendor", row.vendor),
        ("window", f"{thousands(row.context_window)} tokens"),
        ("max input", thousands(row.max_input) if row.max_input else ""),
        ("max output", f"{thousands(row.max_output)} tokens"),
        ("limit", limits.budget().explain()),
        (
            "prices",
            f"$ {_price(row.price_input)} input, {_price(row.price_cached_input)} cached input, "
            f"{_price(row.price_output)} output, for a million tokens"
            + (f"; more above {above:,} tokens of input" if above else ""),
        ),
        ("note", row.note),
        ("source", f"{row.source} ({row.as_of})"),
    ]


def _price(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.3f}"


def _no_model(name: str) -> str:
    from thresher.core.catalog import table as rows

    near = difflib.get_close_matches(name.lower(), [row.name for row in rows()], n=3)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return (
        f"the table has no model {name!r}: {meant}`thresher models` lists what is known, and "
        "--window sets the window of any other."
    )


# -- policies ----------------------------------------------------------------------------------


def policies(name: str | None = None, /, *, json: Json = False) -> int:
    """List the compaction policies, or tell one policy's rule and constants.

    Parameters
    ----------
    name
        A policy's name, as you would give it to --policy.
    """
    from thresher.core.compaction.policies import custom
    from thresher.core.compaction.policies.registry import make
    from thresher.core.compaction.policies.registry import policies as known

    classes = known()
    if name is not None and custom.is_custom(name):
        classes = {name: type(make(name))}
    if name is None:
        _list_policies(classes, json)
        return 0
    if name not in classes:
        near = difflib.get_close_matches(name, classes, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ThresherError(
            "Unknown policy",
            f"there is no policy {name!r}: {meant}known are {', '.join(sorted(classes))}.",
        )
    record = _policy_record(name, classes[name])
    if json:
        output.put_json(record)
    else:
        _tell_policy(record)
    return 0


def _list_policies(classes: Mapping[str, type[Policy]], json: bool) -> None:
    records = [_policy_record(name, each) for name, each in sorted(classes.items())]
    if json:
        for record in records:
            output.put_json(record)
        return
    columns = (
        Column("policy", tone=Tone.STRONG),
        Column("system", least=16),
        Column("asked at", least=16, tone=Tone.MUTED),
    )
    rows = [(r["name"], r["title"], ", ".join(r["moments"])) for r in records]
    output.put(table(columns, rows, output.columns()))
    output.say()
    output.say("`thresher policies NAME` tells the rule and every constant; --set changes one.")


def _tell_policy(record: dict[str, Any]) -> None:
    cells = output.columns()
    output.put([[(record["name"], Tone.STRONG), (f"  {record['title']}", Tone.PLAIN)]])
    output.say()
    output.say(record["rule"])
    output.say()
    output.put(fields([("asked at", ", ".join(record["moments"]))], cells))
    output.say()
    output.put(_constants(record["params"], cells))


def _constants(params: list[dict[str, Any]], cells: int) -> list[Line]:
    """Each constant with its default, its meaning wrapped beside them."""
    defaults = [_value(param["default"]) for param in params]
    name = max((cell_len(param["name"]) for param in params), default=0)
    value = max(map(cell_len, defaults), default=0)
    lines: list[Line] = []
    for param, default in zip(params, defaults, strict=True):
        head = [column(param["name"], name, Tone.STRONG), column(default, value, right=True)]
        for part in wrap(param["meaning"], max(20, min(cells, 120) - name - value - 4)):
            lines.append([head[0], span("  "), head[1], span("  "), span(part, Tone.MUTED)])
            head = [span(" " * name), span(" " * value)]
    return lines


def _policy_record(name: str, policy: type[Policy]) -> dict[str, Any]:
    """What is known of a policy: its rule is the text its own file documents itself with."""
    from thresher.core.compaction.policies.registry import make

    params = make(name, {}).params
    meanings = _meanings(type(params))
    return {
        "name": name,
        "title": policy.title,
        "moments": sorted(moment.value for moment in policy.moments),
        "rule": inspect.getdoc(inspect.getmodule(policy)) or inspect.getdoc(policy) or "",
        "params": [
            {
                "name": field.name,
                "default": msgspec.to_builtins(getattr(params, field.name)),
                "meaning": meanings.get(field.name, ""),
            }
            for field in msgspec.structs.fields(params)
        ],
    }


def _meanings(params: type) -> dict[str, str]:
    """The text under each field of the constants, where its author wrote one; what a class says
    comes before what the classes it is made from say."""
    told: dict[str, str] = {}
    for owner in reversed(params.__mro__):
        if owner not in (object, msgspec.Struct):
            told |= _own_meanings(owner)
    return told


def _own_meanings(params: type) -> dict[str, str]:
    import ast
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(params))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    told: dict[str, str] = {}
    for field, below in pairwise(body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                told[name] = " ".join(text.split())
    return told


def _value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case None | "":
            return "not set"
        case str() | float():
            return str(value)
        case _:
            return msgspec.json.encode(value).decode()
