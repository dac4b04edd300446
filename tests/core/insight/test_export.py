from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given

from thresher.core import events as e
from thresher.core.context import Kept, Replaced
from thresher.core.errors import ThresherError
from thresher.core.insight.export import Form, export
from thresher.core.insight.report import Report
from thresher.core.items import FunctionCall, FunctionCallOutput, system, user
from thresher.core.text import clean

from .sessions import RANDOM, Writer, random_history

VOID = {"meta", "br", "line", "circle", "polyline", "polygon"}
TAGS = VOID | {
    "html", "head", "title", "style", "body", "main", "p", "h1", "h2", "h3", "h4", "dl", "div",
    "dt", "dd", "b", "i", "span", "figure", "figcaption", "svg", "text", "section", "header",
    "table", "thead", "tbody", "tr", "th", "td", "a", "details", "summary", "pre", "del", "ins",
    "ul", "ol", "li", "footer",
}  # fmt: skip


class Checker(HTMLParser):
    """Fails on a tag or an attribute that the report does not use, and on bad nesting."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name in ("href", "src"):
                assert re.fullmatch(r"#c\d+", value or ""), value
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def _check(page: str) -> None:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []


def _hostile(text: str) -> Writer:
    """A session with this text in every place."""
    w = Writer()
    w.emit(e.SessionStarted(session_id=text, agent=text, title=text, model=text, cwd=text))
    head = w.item(system(text))
    w.emit(e.TurnStarted(turn=1))
    w.item(user(text))
    w.emit(e.RequestSent(request=1))
    w.usage(5_000)
    w.item(FunctionCall("c", text or "x", text))
    output = w.item(FunctionCallOutput("c", text, name=text))
    call = w.history.state.context.ids[-2]
    short = FunctionCallOutput("c", f"{text}!", name=text)
    w.compact(
        [Kept(head.bare, call.bare), Replaced(output.bare, short)], reason=text, marks=(text,)
    )
    w.summarise([head], text, policy=text, stage=text, focus=text, summary=text)
    w.item(user(text))
    w.summarise([head], f"{text}\n- more", reason=text)
    w.emit(e.ErrorRaised(kind=text, message=text, line=1))
    return w


def test_hostile_text_breaks_out_of_no_form(hostile_text: str) -> None:
    w = _hostile(hostile_text[:30_000])
    for form in Form:
        text, _ = export(w.history, form, redact=False)
        assert text == clean(text), form
        text.encode()
        if form is Form.HTML:
            _check(text)
            assert "<script" not in text
        if form is Form.JSON:
            json.loads(text)


MARKUP = [
    "<script>alert(1)</script>",
    "</pre></details></main><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</style></title><script>x</script>",
    "&lt;b&gt; &amp; <b>",
    "```\n</details>\n<img src=x>\n```",
    "| a | b |\n[x](javascript:alert(1)) ![i](http://127.0.0.1/x)",
]


@pytest.mark.parametrize("text", MARKUP)
def test_markup_stays_text_in_html(text: str) -> None:
    page, _ = export(_hostile(text).history, Form.HTML)
    _check(page)
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\';' in page


@pytest.mark.parametrize("text", MARKUP)
def test_markup_stays_text_in_markdown(text: str) -> None:
    told, _ = export(_hostile(text).history, Form.MARKDOWN)
    outside = []
    fence = ""
    for line in told.split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif match := re.match(r"(`{3,})text$", line):
            fence = match[1]
        else:
            outside.append(re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", line))
    assert not fence
    rest = "\n".join(outside)
    tags = {tag.lower() for tag in re.findall(r"(?<!\\)<(/?\w+)", rest)}
    assert tags <= {"details", "/details", "summary", "/summary"}
    assert not re.search(r"(?<!\\)\]\(", rest)


@given(RANDOM["steps"](most=25))
def test_any_session_can_be_written_in_every_form(script: list[object]) -> None:
    history = random_history(script)
    page, report = export(history, Form.HTML)
    _check(page)
    assert [part.ordinal for part in report.compactions] == list(
        range(1, history.state.compactions + 1)
    )
    export(history, Form.MARKDOWN)
    text, _ = export(history, Form.JSON)
    assert json.loads(text)["session"]["compactions"] == history.state.compactions


def test_json_is_the_whole_report_and_reads_back() -> None:
    text, report = export(_hostile("plain").history, Form.JSON)
    assert msgspec.json.decode(text, type=Report) == report


def test_one_compaction_alone() -> None:
    w = _hostile("plain")
    page, report = export(w.history, Form.HTML, only=2)
    assert [part.ordinal for part in report.compactions] == [2]
    assert report.context == ()
    assert 'id="c2"' in page
    assert 'id="c1"' not in page
    with pytest.raises(ThresherError, match="no compaction 9"):
        export(w.history, Form.HTML, only=9)


def test_the_change_of_a_rewritten_entry_is_marked_in_place() -> None:
    page, _ = export(_hostile("some words").history, Form.HTML)
    assert "some words<ins>!</ins>" in page


def test_the_chart_shows_reports_compactions_and_the_threshold() -> None:
    w = Writer(threshold=5_000)
    head = w.item(system("rules"))
    w.usage(3_000)
    w.usage(6_000)
    w.summarise([head], "one")
    w.usage(1_000)
    page, report = export(w.history, Form.HTML)
    assert [(point.tokens, point.ordinal) for point in report.chart] == [
        (3_000, 0),
        (6_000, 0),
        (None, 1),
        (1_000, 0),
    ]
    assert "threshold 5,000" in page
    assert page.count('class="cut"') == 1
