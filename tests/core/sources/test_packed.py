from __future__ import annotations

import gzip
import os
import random
import sys
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.sources.base import Source
from thresher.core.sources.chat import ChatSource
from thresher.core.sources.claude_code import ClaudeSource
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.detect import Format, detect
from thresher.core.sources.discover import codex_files, find_codex_sessions
from thresher.core.sources.finders import finders
from thresher.core.sources.lines import is_packed, read_lines
from thresher.core.sources.maf import MafSource
from thresher.core.sources.otlp import OtlpSource
from thresher.core.sources.pi import PiSource

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
NAME = "rollout-2026-11-30T04-11-26-01a22aa6-874f-7820-b2ef-83c538795018.jsonl"


def recording(name: str) -> bytes:
    return gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes())


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def noisy_lines(count: int) -> bytes:
    """Lines that hardly get smaller, so that they fill many blocks."""
    noise = random.Random(1)
    return b"".join(b'{"n":%d,"x":"%x"}\n' % (n, noise.getrandbits(4000)) for n in range(count))


@pytest.mark.parametrize("name", ["mid_turn", "remote_v2", "token_budget"])
def test_a_packed_rollout_tells_what_the_plain_one_tells(name: str, tmp_path: Path) -> None:
    data = recording(name)
    plain = CodexSource(written(tmp_path / "a.jsonl", data))
    packed = CodexSource(written(tmp_path / "b.jsonl.zst", zstd.compress(data)))
    assert list(packed.read()) == list(plain.read())
    assert list(packed.requests()) == list(plain.requests())
    assert packed.context_raw() == plain.context_raw()
    assert list(packed.tail().more()) == list(plain.read())
    assert detect(packed.path).format is Format.CODEX


async def test_a_packed_rollout_can_be_followed_to_its_end(tmp_path: Path) -> None:
    data = recording("mid_turn")
    source = CodexSource(written(tmp_path / "b.jsonl.zst", zstd.compress(data)))
    found = [record async for batch in source.follow() for record in batch]
    assert found == list(source.read())


def test_several_frames_are_one_file(tmp_path: Path) -> None:
    data = recording("mid_turn")
    frames = zstd.compress(data[:5000]) + zstd.compress(data[5000:])
    path = written(tmp_path / "a.jsonl.zst", frames)
    assert [line.value for line in read_lines(path)] == [
        line.value for line in read_lines(written(tmp_path / "a.jsonl", data))
    ]
    assert is_packed(path)


def test_data_that_breaks_off_keeps_the_lines_before(tmp_path: Path) -> None:
    data = zstd.compress(noisy_lines(1500))
    *good, last = read_lines(written(tmp_path / "a.jsonl.zst", data[: len(data) // 2]))
    assert len(good) > 300
    assert [line.value["n"] for line in good[:-1] if line.value] == list(range(len(good) - 1))
    assert (last.value, last.size) == (None, 0)
    assert "cannot be read any further" in last.fault


def test_damaged_data_keeps_the_lines_before(tmp_path: Path) -> None:
    data = bytearray(zstd.compress(noisy_lines(1500)))
    for at in range(len(data) * 2 // 3, len(data) * 2 // 3 + 2000):
        data[at] ^= 0xFF
    lines = list(read_lines(written(tmp_path / "a.jsonl.zst", bytes(data))))
    assert len(lines) > 300
    assert "damaged" in lines[-1].fault


def test_garbage_behind_a_whole_frame_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    data = recording("mid_turn")
    source = CodexSource(written(tmp_path / "a.jsonl.zst", zstd.compress(data) + b"garbage"))
    events = [record.event for record in source.read()]
    assert sum(isinstance(event, e.HistoryCompacted) for event in events) == 1
    (error,) = [event for event in events if isinstance(event, e.ErrorRaised)]
    assert "what came before is whole" in error.message


@pytest.mark.parametrize("size", [4, 5, 9, 40])
def test_nothing_but_a_beginning_is_one_sentence(size: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl.zst", zstd.compress(recording("mid_turn"))[:size])
    with pytest.raises(ThresherError, match="cannot be read") as caught:
        detect(path)
    assert "\n" not in caught.value.msg


def test_a_frame_that_wants_too_much_memory_is_refused(tmp_path: Path) -> None:
    options = {zstd.CompressionParameter.window_log: 30}
    compressor = zstd.ZstdCompressor(options=options)
    data = compressor.compress(recording("mid_turn")) + compressor.flush()
    with pytest.raises(ThresherError, match="cannot be read"):
        detect(written(tmp_path / "a.jsonl.zst", data))


def test_packed_sessions_are_found_and_described(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True)
    packed = written(folder / f"{NAME}.zst", zstd.compress(recording("pre_turn_twice")))
    (found,) = find_codex_sessions(tmp_path)
    assert (found.path, found.compactions, found.model) == (packed, 2, "toy-medium")
    assert found.problem == ""


def test_a_plain_file_beside_the_packed_one_is_the_same_session(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    data = recording("mid_turn")
    packed = written(folder / f"{NAME}.zst", zstd.compress(data))
    assert codex_files(tmp_path) == [packed]
    plain = written(folder / NAME, data)
    os.utime(plain, (1, 1))
    assert codex_files(tmp_path) == [plain]


def test_a_reverted_thread_has_two_files_with_one_id(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    reverted = NAME.replace(".jsonl", "_01a22b91-da3e-7eb0-a7e6-858677b01423.jsonl")
    for name in (NAME, reverted):
        written(folder / name, recording("mid_turn"))
    assert {each.id for each in find_codex_sessions(tmp_path)} == {
        "01a22aa6-874f-7820-b2ef-83c538795018"
    }
    assert len(codex_files(tmp_path)) == 2


DAMAGED_GZIP = b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 40


@pytest.mark.parametrize(
    "source", [CodexSource, ClaudeSource, PiSource, MafSource, OtlpSource, ChatSource]
)
def test_damaged_gzip_data_is_one_sentence_to_every_reader(
    source: type[Source], tmp_path: Path
) -> None:
    path = written(tmp_path / "a.jsonl", DAMAGED_GZIP)
    with pytest.raises(ThresherError, match="cannot be read") as caught:
        list(source(path).read())
    assert "\n" not in caught.value.msg


def test_damaged_gzip_data_is_listed_with_the_reason(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", DAMAGED_GZIP)
    for finder in finders():
        if finder.agent != "opencode":
            assert finder.look_at(path).problem.startswith("cannot be read: ")
