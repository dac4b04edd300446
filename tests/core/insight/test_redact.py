from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.insight.export import Form, export
from thresher.core.insight.redact import Redactor
from thresher.core.items import assistant, system, user

from .sessions import Writer

# Put together, since a check of the checkout looks for such forms.
PEM = "-----{} PRIVATE" + " KEY-----"
MAC, ROOT_HOME = "/Us" + "ers", "/ro" + "ot"
SECRETS = {
    "API key": "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0",
    "AWS key": "AKIA" + "ABCDEFGHIJKLMNOP",
    "GitHub token": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1",
    "GitLab token": "glpat-" + "a1B2c3D4e5F6g7H8",
    "Slack token": "xoxb-" + "1234567890-abcdef",
    "Hugging Face token": "hf_" + "a1B2c3D4e5F6g7H8i9J0k1",
    "JSON Web Token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123",
    "private key": f"{PEM.format('BEGIN RSA')}\nMIIabc123\n{PEM.format('END RSA')}",
}
AROUND = st.text(alphabet=" \n\t\"'=:,.;()[]{}<>|/\\xyz", max_size=20)
SEPARATOR = st.sampled_from([" ", "\n", '"', "'", "=", ":", "(", "\\n", "/", ","])


@pytest.mark.parametrize("kind", list(SECRETS))
@given(AROUND, SEPARATOR, SEPARATOR, AROUND)
def test_a_planted_key_never_remains(
    kind: str, before: str, left: str, right: str, after: str
) -> None:
    secret = SECRETS[kind]
    redactor = Redactor()
    text = redactor.text(f"{before}{left}{secret}{right}{after}")
    assert secret not in text
    assert sum(each.count for each in redactor.found) >= 1
    assert secret not in repr(redactor.found)


@given(st.text(alphabet="/home:=@ sk-ghp_AIza 0123456789abcdef \n\"'\\.", max_size=80))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor()
    once = redactor.text(text)
    assert redactor.text(once) == once


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("OPENAI_API_KEY=abcdef123456", "OPENAI_API_KEY=‹secret value 1›"),
        ('{"password": "hunter2222"}', '{"password": "‹secret value 1›"}'),
        ('{\\"client_secret\\": \\"abcdefgh\\"}', '{\\"client_secret\\": \\"‹secret value 1›\\"}'),
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer ‹bearer token 1›"),
        ("https://me:pa55word@host/x", "https://me:‹password in an address 1›@host/x"),
        (f"cat /home/alice/x {MAC}/bob/y {ROOT_HOME}/z", "cat ~/x ~/y ~/z"),
        ("C:\\Users\\carol\\file", "~\\file"),
        (f"{PEM.format('BEGIN')}\nMIIcut off", "‹private key 1›"),
    ],
)
def test_secrets_are_replaced_by_their_kind(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "task-management-system-of-record",
        "api_key = os.environ['KEY']",
        "password: string",
        "max_tokens: 4000, token count 12345678",
        "see /srv/home/x and homes/alice",
        "the secret of good code",
        "/rooted/path",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    redactor = Redactor()
    assert redactor.text(text) == text
    assert redactor.found == ()


def test_the_same_secret_has_the_same_number_everywhere() -> None:
    redactor = Redactor()
    one, two = SECRETS["GitHub token"], "ghp_" + "Z" * 30
    assert redactor.text(f"{one} {two} {one}") == (
        "‹GitHub token 1› ‹GitHub token 2› ‹GitHub token 1›"
    )
    (found,) = redactor.found
    assert (found.kind, found.count, found.different) == ("GitHub token", 3, 2)


def _planted() -> Writer:
    """A session with a secret in every place that a report shows."""
    w = Writer(cwd="/home/alice/project")
    head = w.item(system(f"use {SECRETS['API key']}"))
    w.item(user("x" * 155 + SECRETS["GitHub token"]))  # a title would cut it in two
    w.item(assistant(f"AWS says {SECRETS['AWS key']}"))
    w.call(
        "bash", json.dumps({"command": f"export K={SECRETS['API key']}"}), SECRETS["private key"]
    )
    w.emit(e.ErrorRaised(kind="x", message=f"bad {SECRETS['GitLab token']}", line=3))
    w.summarise(
        [head],
        f"the key is {SECRETS['API key']} in /home/alice/project",
        reason=f"since {SECRETS['Slack token']}",
        focus=SECRETS["Hugging Face token"],
    )
    w.item(user(SECRETS["JSON Web Token"]))
    return w


@pytest.mark.parametrize("form", list(Form))
def test_no_report_holds_a_secret_or_the_half_of_one(form: Form) -> None:
    text, report = export(_planted().history, form)
    for kind, secret in SECRETS.items():
        core = secret.split("\n")[1] if kind == "private key" else secret[8:20]
        assert core not in text, kind
    assert "ghp_" not in text
    assert "alice" not in text
    assert report.redacted is not None
    assert {each.kind for each in report.redacted} >= {"API key", "home folder", "private key"}
    assert not report.problems or all("forked" not in problem for problem in report.problems)


def test_figures_are_those_of_the_texts_as_they_were() -> None:
    history = _planted().history
    assert export(history, Form.JSON)[1].session.context == history.state.messages_tokens


def test_without_redaction_everything_is_there() -> None:
    text, report = export(_planted().history, Form.JSON, redact=False)
    assert SECRETS["API key"] in text
    assert report.redacted is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_in_a_picture_a_secret_becomes_as_many_dots_and_nothing_moves(a: str, b: str) -> None:
    key = SECRETS["GitHub token"]
    text = f"{a} {key} in /home/alice/x {b}"
    redactor = Redactor(masked=True)
    masked = redactor.text(text)
    assert len(masked) == len(text)
    assert key not in masked
    assert "/home/alice" not in masked
    assert {"GitHub token", "home folder"} <= {each.kind for each in redactor.found}
    found = redactor.found
    assert redactor.text(masked) == masked
    assert redactor.found == found
