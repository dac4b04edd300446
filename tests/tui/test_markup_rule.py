from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import thresher.tui

ROOT = Path(thresher.tui.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MARKUP_WIDGETS = {"Static", "Label", "Button", "Collapsible", "Checkbox", "RadioButton", "Link"}
MARKUP_ATTRIBUTES = {"tooltip", "border_title", "border_subtitle"}
SAFE_CALLS = {"plain", "Content", "assemble", "Text"}


def name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_safe(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return True
    return isinstance(value, ast.Call) and name_of(value.func) in SAFE_CALLS


def without_markup(call: ast.Call) -> bool:
    return any(
        word.arg == "markup" and isinstance(word.value, ast.Constant) and word.value.value is False
        for word in call.keywords
    )


def faults(tree: ast.AST) -> Iterator[str]:
    """Places where a text that is not ours could reach the markup parser."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            if name == "notify" and not without_markup(node):
                yield f"line {node.lineno}: notify without markup=False"
            elif name in MARKUP_WIDGETS and isinstance(node.func, ast.Name):
                if node.args and not is_safe(node.args[0]) and not without_markup(node):
                    yield f"line {node.lineno}: {name} with a text that may be markup"
            elif name == "from_markup" and node.args and not isinstance(node.args[0], ast.Constant):
                yield f"line {node.lineno}: from_markup with a text that is put together"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                named = isinstance(target, ast.Attribute) and target.attr in MARKUP_ATTRIBUTES
                if named and not is_safe(node.value):
                    yield f"line {node.lineno}: {name_of(target)} with a text that may be markup"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_text_reaches_the_markup_parser_by_accident(path: Path) -> None:
    assert list(faults(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "code",
    [
        "self.notify(text)",
        "self.notify(text, markup=True)",
        "Static(text)",
        "Label(f'{name}')",
        "widget.tooltip = text",
        "Content.from_markup(f'[b]{name}')",
    ],
)
def test_the_rule_sees_each_bare_form(code: str) -> None:
    assert list(faults(ast.parse(code)))


@pytest.mark.parametrize("path", sorted((ROOT / "styles").glob("*.tcss")), ids=lambda p: p.name)
def test_stylesheets_name_colours_and_do_not_spell_them(path: Path) -> None:
    assert re.findall(r":[^;{]*#[0-9a-fA-F]{3,8}\b", path.read_text()) == []
