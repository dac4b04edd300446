"""Counting with a real vocabulary: where it comes from, and which model it belongs to.

The o200k_base vocabulary is shipped (`data/o200k_base.tiktoken.gz`); others are used when they lie
in tiktoken's own cache directory. Either is accepted only if its SHA-256 equals the one in
tiktoken's source, from which the split pattern and the special tokens are read too. Nothing is
ever downloaded: tiktoken's definitions run here with a loader that only knows files.

Loading takes a few tenths of a second; do it in a thread.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import os
import tempfile
import types
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .errors import ThresherError
from .tokens import Basis, CharClassCounter, Counter

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "o200k_base"

_DATA = Path(__file__).parent / "data"
_SEGMENT = 4096
_SEARCHES = 32


class CountedWith:
    """Counts with a vocabulary. `basis` is COUNTED only for the model it belongs to.

    Text that spells a special token (`<|endoftext|>`) counts as the plain text it is.

    Text longer than 4,096 characters is counted in segments, since tiktoken takes quadratic time
    on some unbroken runs and aborts on a million spaces. Segments end where the tokenizer splits
    anyway, so the sum is exact; only an unbroken run without any such place is cut hard, and then
    the sum is an upper bound by a token or two for each cut.
    """

    def __init__(self, encoding: Encoding, basis: Basis = Basis.COUNTED) -> None:
        self._encoding = encoding
        self._basis = basis

    @property
    def encoding(self) -> str:
        """The vocabulary's name."""
        return str(self._encoding.name)

    @property
    def basis(self) -> Basis:
        return self._basis

    def count_text(self, text: str) -> int:
        """Tokens of `text`."""
        if len(text) <= _SEGMENT:
            return len(self._encoding.encode_ordinary(text))
        return sum(len(self._encoding.encode_ordinary(part)) for part in _segments(text))

    def estimating(self) -> CountedWith:
        """The same count, for a model this vocabulary does not belong to."""
        return CountedWith(self._encoding, Basis.ESTIMATED)


class Vocabulary(msgspec.Struct, frozen=True):
    """One of tiktoken's vocabularies, for `thresher doctor`.

    `place` is "shipped", a path, or empty when it is not here; `problem` is a sentence, or empty
    when it can be used.
    """

    name: str
    place: str
    problem: str = ""


def load(encoding: str = DEFAULT_ENCODING) -> CountedWith:
    """The counter for a vocabulary of this machine, with basis COUNTED.

    Raises `ThresherError` when tiktoken does not know the name, the file is not here, or its
    SHA-256 is not the one in tiktoken's source.
    """
    return _shipped() if encoding == DEFAULT_ENCODING else CountedWith(_encoding(encoding))


def model_encoding(model: str) -> str | None:
    """The vocabulary that belongs to a model, or None when none is known.

    This is tiktoken's own list, so it covers OpenAI's models; a path such as `openrouter/openai/`
    in front is taken off when it ends in `openai` or `azure`. Other vendors publish none.
    """
    from tiktoken.model import encoding_name_for_model

    path, _, name = model.strip().rpartition("/")
    if path and path.rpartition("/")[2].lower() not in {"openai", "azure"}:
        return None
    try:
        return encoding_name_for_model(name)
    except KeyError:
        return None


def counter_for(model: str) -> Counter:
    """The best counter for a model on this machine; it never raises for a missing vocabulary.

    The model's own vocabulary counts. Without it the shipped one estimates (a foreign vocabulary
    is usually within a tenth or two), and without that the character-class rule does.
    """
    name = model_encoding(model)
    if name is not None:
        try:
            return load(name)
        except ThresherError:
            pass  # the shipped vocabulary below is the next best thing, and its basis says so
    try:
        return load().estimating()
    except ThresherError:
        return CharClassCounter()


def vocabularies() -> tuple[Vocabulary, ...]:
    """All vocabularies tiktoken knows, and which of them can be used here."""
    from tiktoken_ext.openai_public import ENCODING_CONSTRUCTORS

    found = []
    for name in ENCODING_CONSTRUCTORS:
        places: list[str] = []
        try:
            _definition(name, places)
        except ThresherError as error:
            found.append(Vocabulary(name, places[-1] if places else "", error.msg))
        else:
            found.append(Vocabulary(name, places[-1]))
    return tuple(found)


def cache_directory() -> Path | None:
    """Where tiktoken keeps what it downloaded, by its own rule; None when caching is off."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if (chosen := os.environ.get(variable)) is not None:
            return Path(chosen) if chosen else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


@cache
def _shipped() -> CountedWith:
    return CountedWith(_encoding(DEFAULT_ENCODING))


def _encoding(name: str) -> Encoding:
    from tiktoken import Encoding

    return Encoding(**_definition(name, []))


def _definition(name: str, places: list[str]) -> dict[str, Any]:
    """tiktoken's definition of an encoding, with ranks from a verified file.

    tiktoken writes its definitions as functions that call a loader which may download. They are
    run here as copies whose globals hold our loader instead; the module itself stays untouched.
    `places` receives where the vocabulary was found.
    """
    from tiktoken_ext import openai_public

    if name not in openai_public.ENCODING_CONSTRUCTORS:
        raise ThresherError(
            "Vocabulary unknown",
            f"tiktoken knows no vocabulary {name!r}; "
            f"it knows {', '.join(sorted(openai_public.ENCODING_CONSTRUCTORS))}.",
        )

    def from_file(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        data, place = _verified(name, url, expected_hash)
        places.append(place)
        return _ranks(data)

    def not_offered(*_: object, **__: object) -> dict[bytes, int]:
        raise ThresherError(
            "Vocabulary not supported",
            f"The vocabulary {name!r} has an older file format that is not read here; "
            f"use {DEFAULT_ENCODING}.",
        )

    space: dict[str, Any] = dict(vars(openai_public))
    for key, value in vars(openai_public).items():
        if isinstance(value, types.FunctionType) and value.__module__ == openai_public.__name__:
            space[key] = types.FunctionType(value.__code__, space, key)
    space["load_tiktoken_bpe"] = from_file
    space["data_gym_to_mergeable_bpe_ranks"] = not_offered
    definition: dict[str, Any] = space[openai_public.ENCODING_CONSTRUCTORS[name].__name__]()
    return definition


def _verified(name: str, url: str, expected: str | None) -> tuple[bytes, str]:
    """The bytes of a vocabulary file and where they were, if their hash is the expected one."""
    file = url.rpartition("/")[2]
    shipped = _DATA / f"{file}.gz"
    cache_dir = cache_directory()
    cached = (
        cache_dir / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
        if cache_dir
        else None
    )
    refused = ""
    for path, place in ((shipped, "shipped"), (cached, str(cached))):
        if path is None or not path.is_file():
            continue
        try:
            data = gzip.decompress(path.read_bytes()) if path is shipped else path.read_bytes()
        except (OSError, EOFError, zlib.error) as error:
            refused = f" {path} cannot be read ({error})."
            continue
        if expected is not None and hashlib.sha256(data).hexdigest() == expected:
            return data, place
        refused = f" {path} was refused: its SHA-256 is not the one in tiktoken's source."
    raise ThresherError(
        "Vocabulary missing",
        f"The vocabulary {name!r} is not on this machine and nothing is downloaded.{refused} "
        f"Put {file} into tiktoken's cache directory ({cache_dir or 'switched off'}) as "
        f"{cached.name if cached else 'usual'}, or go on with {DEFAULT_ENCODING}.",
    )


def _ranks(data: bytes) -> dict[bytes, int]:
    """Read a .tiktoken file: lines of a base64 token, a space and its rank."""
    words = data.split()
    return dict(zip(map(binascii.a2b_base64, words[::2]), map(int, words[1::2]), strict=True))


def _segments(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _SEGMENT:
        end = _boundary(text, start + _SEGMENT // 2, start + _SEGMENT)
        yield text[start:end]
        start = end
    yield text[start:]


def _boundary(text: str, low: int, high: int) -> int:
    """The last place in low..high where the tokenizer splits anyway, or `high`.

    Such places are: after a newline, when neither white space nor a slash follows; and before a
    single space between a letter or digit and a letter.
    """
    at = high
    for _ in range(_SEARCHES):
        at = text.rfind("\n", low, at)
        if at < 0:
            break
        following = text[at + 1 : at + 2]
        if following and not following.isspace() and following != "/":
            return at + 1
    at = high
    for _ in range(_SEARCHES):
        at = text.rfind(" ", low, at)
        if at < 0:
            break
        if text[at - 1].isalnum() and text[at + 1 : at + 2].isalpha():
            return at
    return high
