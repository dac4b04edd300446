"""Make a large session file: the same bytes for the same arguments, nothing in it is anybody's.

    python tests/benchmarks/make_large.py codex|claude FILE [megabytes] [long-line-megabytes]

The lines have the shapes and, near enough, the sizes of recorded sessions: short counts and turns,
tool outputs of a few kilobytes with a long tail, and a compaction whenever the context is full.
With a fourth argument one tool output near the end is a single line of that size.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import IO, Any

MEGABYTE = 1_000_000
WINDOW = 258_000
"""Tokens of the context; a compaction runs at nine tenths."""
ROUNDS_PER_TURN = 12
START = 1_796_000_000

_PREFIX = (
    "Another language model started to solve this problem and produced a summary of its thinking "
    "process. You also have access to the state of the tools that were used by that language "
    "model. Use this to build on the work that has already been done and avoid duplicating work. "
    "Here is the summary produced by the other language model, use the information in this "
    "summary to assist with your own analysis:\n"
)
_METADATA = "internal_chat_message_metadata_passthrough"
_WORDS = [
    *("parser", "token", "cache", "window", "retry", "socket", "buffer", "branch", "commit"),
    *("stream", "worker", "schema", "index", "shard", "queue", "lease", "cursor", "vector"),
    *("kernel", "module", "handle", "render", "timer", "signal", "thread", "packet"),
]
_LEVELS = ("INFO", "WARN", "ERROR", "DEBUG")

Value = dict[str, Any]


class Texts:
    """Texts cut from a pool that is written once: fast enough for hundreds of megabytes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._pool = "".join(self._line(n) for n in range(20_000))
        signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef0123"
        self._sealed = "".join(self._random.choices(signs, k=1 << 16))

    def _line(self, n: int) -> str:
        r = self._random
        if n % 600 == 0:
            return f"        # déjà vu {n} — “{r.choice(_WORDS)}” 😀\n"
        match r.randrange(4):
            case 0:
                a, b = r.choices(_WORDS, k=2)
                return f"    def {a}_{b}(self, {a}: str) -> dict[str, int]:  # {n}\n"
            case 1:
                a, b, c = r.choices(_WORDS, k=3)
                return f'        return {{"{a}": {n}, "{b}": "{c}", \'{c}\': [1, 2]}}\n'
            case 2:
                return f"{r.randrange(999)}\tsrc/{r.choice(_WORDS)}/{r.choice(_WORDS)}.py:{n}\n"
            case _:
                when = f"2026-01-01T{n % 24:02}:{n % 60:02}:{n % 59:02}"
                level, took = r.choice(_LEVELS), r.randrange(900)
                return f"{when} {level} request={n:05} took={took}ms path=/api/v1/items/{n % 700}\n"

    def text(self, size: int) -> str:
        """About `size` characters of code and logs."""
        pool = self._pool
        at = self._random.randrange(len(pool))
        times = size // len(pool) + 2
        return (pool[at:] + pool * times if at + size > len(pool) else pool[at : at + size])[:size]

    def sealed(self, size: int) -> str:
        """Something like base64."""
        at = self._random.randrange(max(1, len(self._sealed) - size))
        return self._sealed[at : at + size]

    def output(self) -> str:
        """A tool output: half of them up to 4 kB, 8 kB on average as in the recordings of Codex
        (tests/fixtures), at most the 40 kB to which it cuts them."""
        return self.text(min(40_000, 40 + int(self._random.lognormvariate(8.3, 1.25))))

    def words(self, count: int) -> str:
        """A sentence."""
        return " ".join(self._random.choices(_WORDS, k=count))


def stamp(n: int) -> str:
    """A time that goes on by a second and a half a line."""
    day, rest = divmod(n * 3 // 2, 86_400)
    hour, rest = divmod(rest, 3600)
    month, day = divmod(day, 28)
    minute, second = divmod(rest, 60)
    return f"2026-{month % 12 + 1:02}-{day + 1:02}T{hour:02}:{minute:02}:{second:02}.{n % 1000:03}Z"


class Lines:
    """Writes JSON lines and knows how many, and how many bytes, there are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.count = 0
        self.size = 0

    def put(self, value: Value) -> None:
        """Write one line."""
        raw = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        self.size += self._file.write(raw + b"\n")
        self.count += 1


class Codex:
    """A rollout of Codex CLI 0.171."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._texts = Texts(1)
        self._history: list[Value] = []
        self._used = 4_000
        self._total = 0
        self._turn = 0
        self._call = 0

    def write(self, size: int, long: int) -> None:
        """About `size` bytes, one line of `long` bytes among the last fifth of them."""
        self._line("session_meta", {
            "id": "01a22aa6-a0dc-7532-833d-000000000001", "timestamp": stamp(0),
            "cwd": "/home/user/project", "originator": "codex_exec", "cli_version": "0.171.0",
            "base_instructions": {"text": self._texts.text(9_000)},
        })  # fmt: skip
        while self._lines.size < size:
            self._begin()
            for _ in range(ROUNDS_PER_TURN):
                late = self._lines.size > size * 8 // 10
                self._round(long if late else 0)
                long = 0 if late else long
                if self._used > WINDOW * 9 // 10:
                    self._compact()
            self._message("assistant", self._texts.words(120))
            self._report(160)
            self._event("task_complete", turn_id=self._id)

    @property
    def _id(self) -> str:
        return f"turn-{self._turn:06}"

    def _line(self, kind: str, payload: Value, **more: Any) -> None:
        n = self._lines.count
        self._lines.put(
            {"timestamp": stamp(n), "ordinal": n, "type": kind, "payload": payload, **more}
        )

    def _event(self, kind: str, **payload: Any) -> None:
        self._line("event_msg", {"type": kind, **payload})

    def _item(self, kind: str, text: str, *kinds: str, **payload: Any) -> None:
        meta = {"turn_id": self._id, **({"content_item_kinds": list(kinds)} if kinds else {})}
        id = f"{kind}_{self._lines.count:08}"
        item = {"type": kind, "id": id, **payload, _METADATA: meta}
        self._history.append(item)
        self._used += len(text) // 4
        placed = {"history_sequence": len(self._history), "client_authored": False}
        self._line("response_item", item, metadata={**placed, "model_search_state": "unused"})

    def _message(self, role: str, text: str, *kinds: str) -> None:
        self._item("message", text, *kinds, role=role, content=_content(role, text))

    def _begin(self) -> None:
        self._turn += 1
        source = {"turn_id": self._id, "turn_trigger": "exec", "root_turn_id": self._id}
        self._event(
            "task_started", turn_id=self._id, turn_attribution=source, model_context_window=WINDOW
        )
        if self._turn == 1:
            self._message("developer", self._texts.text(3_000), "permissions.instructions")
        self._line("turn_context", {
            "turn_id": self._id, "cwd": "/home/user/project", "model": "toy-large",
            "approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"},
        })  # fmt: skip
        self._message("user", self._texts.words(40), "user.message")

    def _round(self, long: int) -> None:
        self._call += 1
        id, sealed = f"call_{self._call:08}", self._texts.sealed(1_200)
        self._item("reasoning", sealed, summary=[], encrypted_content=sealed)
        command = f"sed -n {self._call}p {self._texts.words(6)}"
        arguments = json.dumps({"cmd": command})
        self._item("function_call", arguments, name="exec_command", arguments=arguments, call_id=id)
        self._report(80)
        output = self._texts.text(long) if long else self._texts.output()
        self._event("item_completed", thread_id="thread", turn_id=self._id, item={
            "type": "CommandExecution", "id": id, "command": command, "status": "completed",
            "aggregated_output": output, "exit_code": 0,
            "duration": {"secs": 1, "nanos": 500_000_000},
        })  # fmt: skip
        shown = f"Chunk ID: {self._call:06x}\nProcess exited with code 0\nOutput:\n{output}"
        self._item("function_call_output", shown[:40_000], call_id=id, output=shown)

    def _report(self, output: int) -> None:
        usage = {
            "input_tokens": self._used, "cached_input_tokens": self._used * 9 // 10,
            "cache_write_input_tokens": 0, "output_tokens": output,
            "reasoning_output_tokens": output // 2, "total_tokens": self._used + output,
        }  # fmt: skip
        self._total += self._used + output
        whole = {**usage, "total_tokens": self._total}
        self._line("token_usage_record", {
            "thread_id": "thread", "turn_id": self._id, "response_id": f"r_{self._lines.count:08}",
            "usage": usage, "turn_token_usage": usage, "thread_token_usage": whole,
        })  # fmt: skip
        self._count(usage, whole)

    def _count(self, last: Value, whole: Value) -> None:
        info = {"total_token_usage": whole, "last_token_usage": last}
        limits = {"limit_id": "codex", "primary": None, "secondary": None, "plan_type": None}
        self._event(
            "token_count", info={**info, "model_context_window": WINDOW}, rate_limits=limits
        )

    def _compact(self) -> None:
        said = [item for item in self._history if item.get("role") == "user"][-20:]
        notes = [item for item in self._history if item.get("role") == "developer"][:1]
        text = f"{_PREFIX}{self._texts.text(6_000)}"
        meta = {"turn_id": self._id, "content_item_kinds": ["compaction.summary"]}
        summary = {
            "type": "message", "id": f"summary_{self._lines.count:08}", "role": "user",
            "content": _content("user", text), _METADATA: meta,
        }  # fmt: skip
        said = [item for item in said if item[_METADATA]["content_item_kinds"] == ["user.message"]]
        self._history = [*notes, *said, summary]
        self._line("compacted", {"message": text, "replacement_history": self._history})
        self._used = 4_000 + sum(len(item["content"][0]["text"]) for item in self._history) // 4
        last = {"input_tokens": 0, "output_tokens": 0, "total_tokens": self._used}
        self._count(last, {**last, "total_tokens": self._total})


def _content(role: str, text: str) -> list[Value]:
    return [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]


def make(format: str, path: Path, size: int, long: int = 0) -> None:
    """Write a session of about `size` bytes."""
    with path.open("wb") as file:
        {"codex": Codex}[format](Lines(file)).write(size, long)


def main() -> None:
    """Make the file that the arguments name."""
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    numbers = [int(float(each) * MEGABYTE) for each in sys.argv[3:]]
    make(sys.argv[1], Path(sys.argv[2]), *(numbers or [123 * MEGABYTE]))


if __name__ == "__main__":
    main()
