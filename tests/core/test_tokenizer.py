from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import tokenizer
from thresher.core.errors import ThresherError
from thresher.core.tokenizer import (
    CountedWith,
    cache_directory,
    counter_for,
    load,
    model_encoding,
    vocabularies,
)
from thresher.core.tokens import Basis, CharClassCounter

CL100K_IN_CACHE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a vocabulary was about to be downloaded")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    copy = tmp_path / "data"
    shutil.copytree(tokenizer._DATA, copy)
    monkeypatch.setattr(tokenizer, "_DATA", copy)
    tokenizer._shipped.cache_clear()
    return copy


@pytest.fixture(autouse=True)
def fresh_counter() -> Any:
    yield
    if Path(tokenizer._DATA).parent.name != "core":
        tokenizer._shipped.cache_clear()


def whole(counter: CountedWith, text: str) -> int:
    return len(counter._encoding.encode_ordinary(text))


def test_the_shipped_file_is_the_one_tiktoken_names() -> None:
    from tiktoken_ext import openai_public

    packed = (tokenizer._DATA / "o200k_base.tiktoken.gz").read_bytes()
    digest = hashlib.sha256(gzip.decompress(packed)).hexdigest()
    assert digest in openai_public.o200k_base.__code__.co_consts


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("tiktoken is great!", 6), ("1234567", 3), ("你好，世界", 3)],
)
def test_known_texts_have_their_known_number_of_tokens(text: str, tokens: int) -> None:
    assert load().count_text(text) == tokens
    assert load().basis is Basis.COUNTED


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|endofprompt|>", "<|im_start|>"])
def test_text_that_spells_a_special_token_is_plain_text(special: str) -> None:
    assert load().count_text(special) > 1
    assert load("o200k_harmony").count_text(special) > 1


def test_lone_surrogates_and_nul_bytes_are_counted() -> None:
    assert load().count_text("a\x00b") > 0
    assert load().count_text("\ud800 x \udfff") > 0


PIECES = st.sampled_from(
    ["word", " word", "Word's", "\n", "\n\n", "  ", "\t", "/", "//", "=", " {", "};", "12345",
     "é", "好", " 🎉", "\r\n", " ", "_x", ".", "ßß", "\u0301"]
)  # fmt: skip


@given(st.lists(PIECES, min_size=1, max_size=40), st.integers(1, 400))
def test_counting_in_segments_equals_counting_at_once(pieces: list[str], times: int) -> None:
    counter = load()
    text = ("".join(pieces) + "\nend of line") * times
    assert counter.count_text(text) == whole(counter, text)


@given(st.lists(PIECES, min_size=1, max_size=60), st.integers(1, 300))
def test_segments_are_the_text_and_are_bounded(pieces: list[str], times: int) -> None:
    text = "".join(pieces) * times
    parts = list(tokenizer._segments(text))
    assert "".join(parts) == text
    assert all(0 < len(part) <= 4096 for part in parts)


@pytest.mark.parametrize("unit", ["a", "A", " ", "\t", "\n", "=", "0", "好", "ab", "🎉"])
def test_a_million_times_the_same_is_counted_without_stalling(unit: str) -> None:
    text = unit * (1_000_000 // len(unit)) + "x"
    assert 0 < load().count_text(text) < 2 * len(text) + 2


def test_a_hard_cut_adds_at_most_two_tokens_each() -> None:
    text = base64.b64encode(hashlib.sha512(b"seed").digest() * 400).decode()
    counter = load()
    exact, cuts = whole(counter, text), len(text) // 4096
    assert exact <= counter.count_text(text) <= exact + 2 * cuts


def test_a_changed_vocabulary_is_refused(data: Path) -> None:
    file = data / "o200k_base.tiktoken.gz"
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()) + b"IQ== 200100\n"))
    with pytest.raises(ThresherError, match="SHA-256 is not the one") as caught:
        load()
    assert str(file) in caught.value.msg


@pytest.mark.parametrize(
    "rubbish", [b"", b"not gzip", gzip.compress(b"x" * 4000)[:20]], ids=["empty", "text", "cut"]
)
def test_a_broken_vocabulary_is_refused(data: Path, rubbish: bytes) -> None:
    (data / "o200k_base.tiktoken.gz").write_bytes(rubbish)
    with pytest.raises(ThresherError, match="nothing is downloaded"):
        load()


def test_without_any_vocabulary_a_model_is_estimated(data: Path) -> None:
    (data / "o200k_base.tiktoken.gz").unlink()
    assert isinstance(counter_for("gpt-5"), CharClassCounter)


def test_a_vocabulary_that_is_not_here_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="cl100k_base") as caught:
        load("cl100k_base")
    assert CL100K_IN_CACHE in caught.value.msg
    assert str(tmp_path) in caught.value.msg


def test_a_cached_file_with_the_wrong_hash_is_refused_and_left_alone(tmp_path: Path) -> None:
    cached = tmp_path / CL100K_IN_CACHE
    cached.write_bytes(b"IQ== 0\n")
    with pytest.raises(ThresherError, match="refused"):
        load("cl100k_base")
    assert cached.read_bytes() == b"IQ== 0\n"


def test_a_vocabulary_is_found_in_tiktokens_cache(data: Path, tmp_path: Path) -> None:
    packed = data / "o200k_base.tiktoken.gz"
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    cached = tmp_path / hashlib.sha1(url.encode()).hexdigest()
    cached.write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    assert load().count_text("hello world") == 2
    assert {v.name: v.place for v in vocabularies()}["o200k_base"] == str(cached)


def test_the_cache_directory_follows_tiktokens_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/one")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", "/two")
    assert cache_directory() == Path("/one")
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    assert cache_directory() == Path("/two")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", "")
    assert cache_directory() is None
    with pytest.raises(ThresherError, match="switched off"):
        load("cl100k_base")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR")
    assert cache_directory() == Path(tempfile.gettempdir()) / "data-gym-cache"


def test_an_unknown_vocabulary_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ThresherError, match="o200k_base"):
        load("o300k")


def test_the_list_of_vocabularies_says_where_each_is_or_why_not() -> None:
    found = {v.name: v for v in vocabularies()}
    assert (found["o200k_base"].place, found["o200k_base"].problem) == ("shipped", "")
    assert found["o200k_harmony"].place == "shipped"
    assert "nothing is downloaded" in found["cl100k_base"].problem
    assert "older file format" in found["gpt2"].problem


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-5", "o200k_base"),
        ("gpt-4o-2024-08-06", "o200k_base"),
        ("openai/o3", "o200k_base"),
        ("openrouter/openai/gpt-4.1", "o200k_base"),
        ("gpt-oss-20b", "o200k_harmony"),
        ("gpt-4", "cl100k_base"),
        ("claude-opus-4-5", None),
        ("deepseek/gpt-5", None),
        ("", None),
    ],
)
def test_a_model_has_the_vocabulary_tiktoken_says_or_none(model: str, encoding: str | None) -> None:
    assert model_encoding(model) == encoding


@pytest.mark.parametrize(
    ("model", "basis"),
    [
        ("gpt-5", Basis.COUNTED),
        ("gpt-oss-120b", Basis.COUNTED),
        ("claude-opus-4-5", Basis.ESTIMATED),
        ("gpt-4", Basis.ESTIMATED),
        ("no such model", Basis.ESTIMATED),
    ],
)
def test_only_a_models_own_vocabulary_counts(model: str, basis: Basis) -> None:
    counter = counter_for(model)
    assert counter.basis is basis
    assert counter.count_text("hello world") == 2


def test_loading_leaves_tiktoken_as_it_was() -> None:
    import tiktoken.registry
    from tiktoken_ext import openai_public

    before = openai_public.load_tiktoken_bpe
    tokenizer._shipped.cache_clear()
    load()
    assert openai_public.load_tiktoken_bpe is before
    assert "o200k_base" not in tiktoken.registry.ENCODINGS


def test_importing_the_module_does_not_import_tiktoken() -> None:
    import subprocess

    program = "import sys, thresher.core.tokenizer, thresher.core.ledger, thresher.core.models\n"
    program += "sys.exit('tiktoken' in sys.modules)"
    links = Path(tokenizer.__file__).parents[2] / ".dev"
    where = links if links.is_dir() else Path(tokenizer.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(where)}, check=False
    )
    assert done.returncode == 0
