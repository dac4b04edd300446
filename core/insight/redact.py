"""Redaction: keys, tokens, passwords and home folders leave a text before it leaves the machine.

A secret is replaced by its kind and a number, the same number wherever it stands, so that a reader
can still see that two places hold the same one. What is found is counted by kind; the secret itself
is kept nowhere but as a digest in memory. Patterns find what looks like a secret: no list of
patterns finds everything, so the report says what was found and the reader looks it over.

The forms are those that the issuers document (OpenAI, Anthropic, GitHub, GitLab, AWS, Google,
Slack, Hugging Face, npm, PyPI, Stripe, JSON Web Tokens of RFC 7519, PEM of RFC 7468).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import msgspec


class Redacted(msgspec.Struct, frozen=True):
    """What was taken out: a kind, how often, and how many different ones. Never the secret."""

    kind: str
    count: int
    different: int


# Forms that no other text has are looked for everywhere, all others where a word begins. The
# letter of an escape (\n) in JSON text is no beginning of the word that follows it.
_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
_QUOTE = r"(?:\\*[\"'])"
_VALUE = r"[^\s\"'`\\,;&|<>(){}\[\]$]"

_KEYS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private key",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----"
            r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
            re.S,
        ),
    ),
    ("API key", re.compile(_START + r"sk-[A-Za-z0-9_-]{16,}")),
    ("API key", re.compile(_START + r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}")),
    ("API key", re.compile(r"AIza[A-Za-z0-9_-]{30,}")),
    ("API key", re.compile(_START + r"gsk_[A-Za-z0-9]{20,}")),
    ("API key", re.compile(_START + r"xai-[A-Za-z0-9]{20,}")),
    ("AWS key", re.compile(_START + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])")),
    ("GitHub token", re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}")),
    ("GitHub token", re.compile(r"github_pat_[A-Za-z0-9_]{20,}")),
    ("GitLab token", re.compile(r"glpat-[A-Za-z0-9_-]{16,}")),
    ("Slack token", re.compile(_START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("Hugging Face token", re.compile(_START + r"hf_[A-Za-z0-9]{20,}")),
    ("npm token", re.compile(_START + r"npm_[A-Za-z0-9]{30,}")),
    ("PyPI token", re.compile(_START + r"pypi-[A-Za-z0-9_-]{30,}")),
    (
        "JSON Web Token",
        re.compile(_START + r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
    ),
)
_AFTER_NAME: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("bearer token", re.compile(r"\b((?:Bearer|Basic)\s+)([A-Za-z0-9._~+/=-]{8,})", re.I)),
    ("password in an address", re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,80}:)"
                                          r"([^\s/@\"']{1,200})(?=@)", re.I)),
    (
        "secret value",
        re.compile(
            r"((?:api[_-]?key|apikey|secret[_-]?key|client[_-]?secret|access[_-]?key(?:[_-]?id)?|"
            r"auth[_-]?token|access[_-]?token|refresh[_-]?token|private[_-]?key|"
            r"_(?:token|secret|key|passwd|password|pwd)|passphrase|password|passwd)"
            + _QUOTE + r"?\s{0,4}(?:=|:|=>)\s{0,4}" + _QUOTE + r"?)"
            r"(" + _VALUE + r"{6,400})",
            re.I,
        ),
    ),
)  # fmt: skip
_HOME = re.compile(
    r"(?:(?<![\w.~-])|(?<=\\[nrt]))"
    r"(?:/(?:home|Users|var/home)/[^\s/\"'`\\:,;<>()\[\]{}|*?]+|/root(?![\w.-])"
    r"|[A-Za-z]:[\\/]{1,4}Users[\\/]{1,4}[^\s\\/\"'`:,;<>()\[\]{}|*?]+)"
)
_PLACEHOLDER = re.compile(r"‹[A-Za-z ]+ \d+›")
_NO_SECRET = re.compile(
    r"(?:true|false|null|none|undefined|string|required|optional|os\.\w+.*|process\.\w+.*|x+|\*+|"
    r"\.+|self\.\w+|str|bytes|int|‹.*|•.*)\Z",
    re.I,
)
_SIGNS = re.compile(
    r"sk-|[spr]k_|AIza|gsk_|xai-|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|hf_|npm_|pypi-|eyJ|"
    r"PRIVATE KEY|bearer|basic|://|key|secret|token|passw|passp|pwd|/home/|/Users/|/root|Users",
    re.I,
)
"""One of these is in every text that holds a secret: all others are passed over at once."""


class Redactor:
    """Redacts texts and counts what it found. One for one report.

    With `masked` a secret becomes as many dots as it has characters: for a picture, where nothing
    may move.
    """

    def __init__(self, *, masked: bool = False) -> None:
        self._masked = masked
        self._numbers: dict[str, dict[bytes, int]] = {}
        self._counts: dict[str, int] = {}

    @property
    def found(self) -> tuple[Redacted, ...]:
        """What was taken out so far, by kind."""
        return tuple(
            Redacted(kind, count, len(self._numbers[kind])) for kind, count in self._counts.items()
        )

    def suspects(self, text: str) -> bool:
        """Whether anything in the text, which may be JSON, could be a secret. Cheap."""
        return _SIGNS.search(text) is not None

    def text(self, text: str) -> str:
        """The text without its secrets. Redact first, cut afterwards: half a key is still one."""
        if not self.suspects(text):
            return text
        for kind, pattern in _KEYS:
            text = pattern.sub(self._whole(kind), text)
        for kind, pattern in _AFTER_NAME:
            text = pattern.sub(self._value(kind), text)
        return _HOME.sub(self._home, text)

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it redacted, keys of mappings as well."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.value(name): self.value(item) for name, item in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
            case _:
                return value

    def _whole(self, kind: str) -> Callable[[re.Match[str]], str]:
        def replaced(match: re.Match[str]) -> str:
            # Words with dashes may look like this one key, but then without a digit.
            words = match[0].startswith("sk-") and not any(map(str.isdigit, match[0]))
            return match[0] if words else self._placeholder(kind, match[0])

        return replaced

    def _value(self, kind: str) -> Callable[[re.Match[str]], str]:
        def replaced(match: re.Match[str]) -> str:
            if _PLACEHOLDER.search(match[2]) or _NO_SECRET.match(match[2]):
                return match[0]
            return match[1] + self._placeholder(kind, match[2])

        return replaced

    def _home(self, match: re.Match[str]) -> str:
        self._count("home folder", match[0])
        return _dots(match[0]) if self._masked else "~"

    def _placeholder(self, kind: str, secret: str) -> str:
        number = self._count(kind, secret)
        return _dots(secret) if self._masked else f"‹{kind} {number}›"

    def _count(self, kind: str, secret: str) -> int:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        numbers = self._numbers.setdefault(kind, {})
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        return numbers.setdefault(digest, len(numbers) + 1)


def _dots(secret: str) -> str:
    return "•" * len(secret)
