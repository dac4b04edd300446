"""Make a large session file: the same bytes for the same arguments, nothing in it is anybody's.

    python tests/benchmarks/make_large.py codex|claude FILE [megabytes] [long-line-megabytes]

The lines have the shapes, the sizes and the escapes of recorded sessions, and a compaction comes
whenever the context is full. With a fourth argument one tool output near the end is a single line
of that size.

A rollout of Codex takes after the 15 recordings of 0.171 (tests/fixtures/codex, 689 lines): every
line has the fields of the recorded kind; a turn has the lines of the mean recorded turn (1.06
calls, a start of a process with its world_state in every second one); outputs are drawn between the
octiles of the recorded ones and look like them, so the share of escapes is theirs (0.76 bytes of a
hundred are backslashes, recorded 0.74). Per kind the mean lengths are the recorded ones within a
tenth (a task_complete repeats what is said, and is longer); the mean of all lines is 1,856 bytes at
123 MB, recorded 1,686. Unlike the recordings: they compact at 5,000 tokens by configuration, this
at nine tenths of a window of 258,000, so compacted lines are few and long (0.06 % of lines, 7 % of
bytes; recorded 2.6 % and 10 %), and so are the counts and settings around them; what the user and
the model say is thirty words, since a compaction keeps what was said and the recorded prompts of
four words would make it keep thousands; repeated counts of failed tries are left out. There is no
reasoning, as in the recordings, whose answers are scripted.

A transcript of Claude Code takes after the recordings of 2.1.197 and before (tests/fixtures): their
kinds of lines in their proportions, with the fields and the envelope of 2.1.197; results of tools
by the octiles of the recorded ones (7 kB on average, up to 31 kB), each of them twice in its line,
the second time as `toolUseResult` has it (`stdout`, or the file without line numbers); two calls at
once in a third of the responses, the results on side branches; files of 6 kB that are read again
after a compaction, and the last round as its preserved segment; the same share of escapes (2.5
bytes of a hundred). What was scripted in the recordings and is longer in real sessions (what is
said and thought, summaries, the signature of thinking) is longer here. The context is compacted
when it is full (167,000 tokens).
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import IO, Any
from uuid import UUID

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
_COUNTS = (
    *("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"),
    *("reasoning_output_tokens", "total_tokens"),
)
_ROUNDS = 34 / 32
"""Calls in a recorded turn."""
_CWD = "/home/user/project"
_NOTES = "# Project notes\n\n- Keep answers short.\n- Never edit files under logs/.\n"
_AGENTS = f"# AGENTS.md instructions for {_CWD}\n\n"
_PERMISSIONS = (
    "<permissions instructions>\nFilesystem sandboxing defines which files can be read or written. "
    "Approval policy is currently never.\n</permissions instructions>"
)
_FILESYSTEM = (
    f"<filesystem><workspace_roots><root>{_CWD}</root></workspace_roots><permission_profile "
    'type="disabled"><file_system type="unrestricted" /></permission_profile></filesystem>'
)
_LEVELS = ("INFO", "WARN", "ERROR", "DEBUG")

Value = dict[str, Any]


class Texts:
    """Texts cut from a pool that is written once: fast enough for hundreds of megabytes."""

    def __init__(self, seed: int, *, quoted: int = 1) -> None:
        self._random = random.Random(seed)
        self._quoted = quoted
        """Every which line of code has double quotes, which are escaped."""
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
                code = f'        return {{"{a}": {n}, "{b}": "{c}", \'{c}\': [1, 2]}}\n'
                return code.replace('"', "'") if n % self._quoted else code
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

    OUTPUTS = (3, 17, 3230, 9123, 9123, 9123, 16589, 16589, 16589)
    """Characters of the recorded outputs of commands: the least, seven octiles, the most."""
    SHOWN = 10_000
    """Characters of an output that the model is shown."""
    SAID = 30
    """Words that the user and the model say at a time: in the recordings they are scripted and few,
    so that a compaction would keep thousands of them."""
    STARTS = 15 / 32
    """How many turns began in a process of their own, which states the world anew."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._random = random.Random(1)
        self._log = "".join(self._logged(n) for n in range(12_000))
        self._texts = Texts(1)
        self._thread = self._uuid()
        self._window = self._uuid()
        self._windows = 0
        self._history: list[Value] = []
        self._used = 400
        self._turn_total = self._total = dict.fromkeys(_COUNTS, 0)
        self._id = ""
        self._calls = self._responses = 0
        self._rounds_due = self._starts_due = 0.0

    def write(self, size: int, long: int) -> None:
        """About `size` bytes, one line of `long` bytes among the last fifth of them."""
        self._line("session_meta", {
            "account_scoped": True, "session_id": self._thread, "id": self._thread,
            "timestamp": stamp(0), "cwd": _CWD, "runtime_workspace_roots": [_CWD],
            "originator": "codex_exec", "cli_version": "0.171.0", "source": "exec",
            "thread_source": "user", "model_provider": "fake",
            "base_instructions": {
                "text": "You are a scripted stand-in agent. Work in the project folder and answer "
                "briefly.", "provenance": {"type": "model", "model": "toy-large"},
            },
            "history_mode": "paginated", "context_window": {"window_id": self._window},
        })  # fmt: skip
        while self._lines.size < size:
            self._begin()
            self._rounds_due += _ROUNDS
            while self._rounds_due >= 1:
                self._rounds_due -= 1
                late = self._lines.size > size * 8 // 10
                self._round(long if late else 0)
                long = 0 if late else long
                if self._used > WINDOW * 9 // 10:
                    self._compact()
            self._end()

    def _uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def _logged(self, n: int) -> str:
        r = self._random
        if n % 120 == 0:
            return f'        raise ValueError("{r.choice(_WORDS)} {n}")\n'
        if n % 601 == 0:
            return f"# déjà vu {n} — “{r.choice(_WORDS)}”\n"
        when = f"2026-01-01T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}"
        level, user = r.choice(_LEVELS), r.randrange(200)
        took, item = r.randrange(900), r.randrange(1000)
        rest = f"user=u{user:03} took={took}ms path=/api/v1/items/{item}"
        return f"{when} {level} request={n:05} {rest}\n"

    def _output(self, size: int) -> str:
        pool = self._log
        at = self._random.randrange(len(pool))
        return (pool[at:] + pool * (size // len(pool) + 1))[:size]

    def _size(self) -> int:
        at = self._random.random() * (len(self.OUTPUTS) - 1)
        low, high = self.OUTPUTS[int(at)], self.OUTPUTS[int(at) + 1]
        return int(low + (high - low) * (at % 1))

    # -- lines -------------------------------------------------------------------------------------

    def _line(self, kind: str, payload: Value, **more: Any) -> None:
        n = self._lines.count
        self._lines.put(
            {"timestamp": stamp(n), "ordinal": n, "type": kind, "payload": payload, **more}
        )

    def _event(self, kind: str, **payload: Any) -> None:
        self._line("event_msg", {"type": kind, **payload})

    def _done(self, item: Value) -> None:
        now = (START + self._lines.count) * 1000
        self._event(
            "item_completed", thread_id=self._thread, turn_id=self._id, item=item,
            started_at_ms=now, completed_at_ms=now,
        )  # fmt: skip

    def _item(self, item: Value, size: int, meta: Value | None = None, **more: Any) -> None:
        item[_METADATA] = {"turn_id": self._id, **(meta or {})}
        self._history.append(item)
        self._used += size // 4
        placed = {
            "history_sequence": len(self._history), "sampled_through_sequence": 0,
            "client_authored": False, **more, "model_search_state": "unused",
        }  # fmt: skip
        self._line("response_item", item, metadata=placed)

    def _message(self, role: str, text: str, kind: str, **more: Any) -> None:
        item = {
            "type": "message", "id": f"msg_{self._uuid()}", "role": role,
            "content": _content(role, text),
        }  # fmt: skip
        told: Value = {"content_item_kinds": [kind]}
        if role != "assistant":
            told = {
                "create_time": START + self._lines.count + 0.0759566, **told,
                "content_item_metadata": [{"provenance": {"type": role}}],
            }  # fmt: skip
        self._item(item, len(text), told, **more)

    def _settings(self) -> Value:
        told = {"model": "toy-large", "reasoning_effort": None, "developer_instructions": None}
        return {"mode": "default", "settings": told}

    def _state_settings(self) -> None:
        self._line("turn_context", {
            "turn_id": self._id, "root_turn_id": self._id, "disabled_plugin_ids": [], "cwd": _CWD,
            "approval_policy": "never", "approvals_reviewer": "user",
            "permission_profile": {"type": "disabled"}, "model": "toy-large", "comp_hash": "7",
            "collaboration_mode": self._settings(), "multi_agent_version": "disabled",
            "realtime_active": False, "summary": "none",
            "sandbox_policy": {"type": "danger-full-access"},
        })  # fmt: skip
        self._apply()

    def _apply(self) -> None:
        self._event("thread_settings_applied", thread_id=self._thread, thread_settings={
            "model": "toy-large", "model_provider_id": "fake", "approval_policy": "never",
            "approvals_reviewer": "user", "requested_approvals_reviewer": "user",
            "permission_profile": {"type": "disabled"}, "cwd": _CWD,
            "runtime_workspace_roots": [_CWD], "collaboration_mode": self._settings(),
            "disabled_plugin_ids": [],
        })  # fmt: skip

    def _state_world(self) -> None:
        self._line("world_state", {"full": True, "state": {
            "agents_md": {"directory": _CWD, "text": _NOTES}, "apps_instructions": False,
            "collaboration_mode": {
                "mode": "default", "model": "toy-large", "instructions": "d" * 40,
            },
            "context_window_guidance": "",
            "environments": {
                "environments": {"local": {"cwd": _CWD, "status": "available", "shell": "bash"}},
                "current_date": "2026-11-30", "timezone": "Etc/UTC", "filesystem": _FILESYSTEM,
            },
            "environments_instructions": False, "git_attribution": False,
            "host_skills": {"includeInstructions": True}, "managed_developer_instructions": {},
            "model": "toy-large", "model_catalog": "e" * 40, "multi_agent_mode": {},
            "permissions": {"instructions": "3" * 40, "approved_command_prefixes": []},
            "persistent_mode": {}, "plugins_instructions": False, "realtime": {"active": False},
            "skills": {"includeInstructions": True},
        }})  # fmt: skip

    # -- turns -------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._id = self._uuid()
        self._turn_total = dict.fromkeys(_COUNTS, 0)
        self._starts_due += self.STARTS
        starts = self._starts_due >= 1
        if starts:
            self._starts_due -= 1
            self._apply()
        source = {
            "turn_id": self._id, "turn_trigger": "exec", "parent_turn_id": None,
            "initiating_agent_path": None, "root_turn_id": self._id,
        }  # fmt: skip
        self._event(
            "task_started", turn_attribution=source, turn_id=self._id, root_turn_id=self._id,
            started_at=START + self._lines.count, model_context_window=WINDOW,
            collaboration_mode_kind="default",
        )  # fmt: skip
        if not self._history:
            self._message("developer", _PERMISSIONS, "permissions.instructions")
            self._message("user", f"{_AGENTS}{_NOTES}", "agents_md.instructions")
        if starts:
            self._state_world()
        self._state_settings()
        said, id = self._texts.words(self.SAID), self._uuid()
        kept = {"message_id": id, "turn_id": self._id, "role": "user"}
        source = {"id": kept, "revision": f"retained_{self._uuid()}", "complete": True}
        self._message("user", said, "user.text", retained_source=source, user_input_order=0)
        told = {"type": "text", "text": said, "text_elements": []}
        self._done({"type": "UserMessage", "id": id, "content": [told]})

    def _end(self) -> None:
        said = self._texts.words(self.SAID)
        answer = {"type": "AgentMessage", "id": f"msg_{self._responses:04}"}
        told = [{"type": "Text", "text": said}]
        self._done({**answer, "content": told, "phase": "final_answer"})
        self._message("assistant", said, "unknown")
        self._report()
        self._event(
            "task_complete", root_turn_id=self._id, turn_id=self._id, last_agent_message=said,
            started_at=START, completed_at=START + self._lines.count, duration_ms=1068,
            time_to_first_token_ms=137,
        )  # fmt: skip

    def _round(self, long: int) -> None:
        self._calls += 1
        id, n = f"call_{self._calls:06}_0", self._calls
        command = f"sed -n {n % 900},{n % 900 + 90}p {self._random.choice(_WORDS)}.py"
        arguments = json.dumps({"cmd": command})
        call = {"type": "function_call", "id": f"fc_{n:06}_0", "name": "exec_command"}
        self._item({**call, "arguments": arguments, "call_id": id}, len(arguments))
        self._record()
        output = self._output(long or self._size())
        self._done({
            "type": "CommandExecution", "id": id, "process_id": "5720",
            "command": ["/bin/bash", "-lc", command], "cwd": f"file://{_CWD}",
            "parsed_cmd": [{"type": "read", "cmd": command, "name": "app.log", "path": "app.log"}],
            "source": "unified_exec_startup", "status": "completed", "aggregated_output": output,
            "exit_code": 0, "duration": {"secs": 0, "nanos": 12_634},
        })  # fmt: skip
        shown = output if long or len(output) < self.SHOWN else (
            f"Warning: truncated output (original token count: {len(output) // 4})\n"
            f"Total output lines: 200\n\n{output[: self.SHOWN]}"
        )  # fmt: skip
        text = (
            f"Chunk ID: {n:06x}\nWall time: 0.0000 seconds\nProcess exited with code 0\n"
            f"Original token count: {len(output) // 4}\nOutput:\n{shown}"
        )
        done = {"type": "function_call_output", "id": f"fco_{self._uuid()}", "call_id": id}
        self._item({**done, "output": text}, min(len(text), self.SHOWN))
        self._count(self._usage, self._total)

    def _report(self) -> None:
        self._record()
        self._count(self._usage, self._total)

    def _record(self) -> None:
        self._responses += 1
        figures = (self._used, self._used * 9 // 10, 0, 50, 0, self._used + 50)
        self._usage: Value = dict(zip(_COUNTS, figures, strict=True))
        self._turn_total = {key: self._turn_total[key] + self._usage[key] for key in _COUNTS}
        self._total = {key: self._total[key] + self._usage[key] for key in _COUNTS}
        self._line("token_usage_record", {
            "thread_id": self._thread, "turn_id": self._id, "session_id": self._thread,
            "root_turn_id": self._id, "response_id": f"resp_{self._responses:04}",
            "usage": self._usage, "turn_token_usage": self._turn_total,
            "thread_token_usage": self._total,
        })  # fmt: skip

    def _count(self, last: Value, whole: Value, *, made_up: bool = False) -> None:
        self._event("token_count", info={
            "total_token_usage": whole, "last_token_usage": last,
            "last_usage_includes_reasoning": made_up, "model_context_window": WINDOW,
        }, rate_limits={
            "limit_id": "codex", "limit_name": None, "primary": None, "secondary": None,
            "credits": None, "individual_limit": None, "spend_control_reached": None,
            "plan_type": None, "rate_limit_reached_type": None,
        })  # fmt: skip

    def _compact(self) -> None:
        self._count(self._usage, self._total)
        summary = self._texts.text(6_000)
        self._message("assistant", summary, "unknown", compaction_output=True)
        del self._history[-1]
        self._report()
        text = f"{_PREFIX}{summary}"
        kept = [item for item in self._history if item["type"] == "message"]
        said = [item for item in kept if item["role"] == "user" and not _is_summary(item)]
        notes = [item for item in kept if item["role"] == "developer"]
        told = {"turn_id": self._id, "content_item_kinds": ["compaction.summary"]}
        summed = {
            "type": "message", "id": f"msg_{self._uuid()}", "role": "user",
            "content": _content("user", text), _METADATA: told,
        }  # fmt: skip
        self._history = [*notes, *_newest(said), summed]
        self._windows += 1
        before, self._window = self._window, self._uuid()
        self._line("compacted", {
            "message": text, "replacement_history": self._history,
            "window_number": self._windows, "previous_window_id": before,
            "window_id": self._window, "compaction_response_id": f"resp_{self._responses:04}",
        })  # fmt: skip
        self._state_world()
        self._state_settings()
        self._used = sum(len(item["content"][0]["text"]) for item in self._history) // 4
        last = {**dict.fromkeys(_COUNTS, 0), "total_tokens": self._used}
        self._count(last, self._total, made_up=True)
        self._done({"type": "ContextCompaction", "id": self._uuid()})


def _newest(said: list[Value]) -> list[Value]:
    """What Codex keeps of what the user said: the newest 20,000 tokens."""
    room, kept = 20_000, []
    for item in reversed(said):
        room -= -(-len(item["content"][0]["text"]) // 4)
        if room < 0:
            break
        kept.append(item)
    return kept[::-1]


def _is_summary(item: Value) -> bool:
    return "compaction.summary" in item[_METADATA]["content_item_kinds"]


class Claude:
    """A transcript of Claude Code 2.1.197."""

    FULL = 167_000
    """Tokens at which the context is compacted."""
    BASE = 33_000
    """Tokens of what the transcript does not hold: the system prompt and the tools."""
    RESULTS = (3, 12, 12, 5441, 5513, 5529, 6020, 21060, 31404)
    """Characters of the recorded results: the least, seven octiles, the most."""
    RESTORED = 5_500
    """Characters of a file that is read again."""
    FILES = 5
    """Files that are read again after a compaction."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._texts = Texts(2, quoted=3)
        self._random = random.Random(3)
        self._session = self._uuid()
        self._last: str | None = None
        self._prompt = ""
        self._round_uuids: list[str] = []
        self._used = self.BASE
        self._cached = self.BASE
        self._response = 0
        self._compactions = 0
        self._said = ""

    def write(self, size: int, long: int) -> None:
        """About `size` bytes, one line of `long` bytes among the last fifth of them."""
        while self._lines.size < size:
            self._begin()
            for _ in range(ROUNDS_PER_TURN):
                late = self._lines.size > size * 8 // 10
                self._round(long if late else 0)
                long = 0 if late else long
                if self._used > self.FULL:
                    self._compact()
            self._respond([{"type": "text", "text": self._texts.words(120)}], "end_turn")
            self._lines.put(
                {"type": "last-prompt", "lastPrompt": self._said, "leafUuid": self._last,
                 "sessionId": self._session}
            )  # fmt: skip
            self._lines.put({"type": "mode", "mode": "normal", "sessionId": self._session})

    def _uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def _record(
        self,
        kind: str,
        parent: str | None,
        before: Value | None = None,
        behind: Value | None = None,
        *,
        uuid: str = "",
        **fields: Any,
    ) -> str:
        id = uuid or self._uuid()
        # The type stands before the message or behind it, as in the recordings.
        first = {"type": kind} if kind in ("user", "system") else {}
        self._lines.put({
            "parentUuid": parent, **(before or {}), "isSidechain": False, **first, **fields,
            "type": kind, "uuid": id, "timestamp": stamp(self._lines.count), **(behind or {}),
            "userType": "external", "entrypoint": "cli", "cwd": "/home/user/project",
            "sessionId": self._session, "version": "2.1.197", "gitBranch": "main",
            "slug": "mighty-petting-biscuit",
        })  # fmt: skip
        self._last = id
        return id

    def _begin(self) -> None:
        self._said = self._texts.words(40)
        moment, session = stamp(self._lines.count), self._session
        queued = {"type": "queue-operation", "timestamp": moment, "sessionId": session}
        self._lines.put({**queued, "operation": "enqueue", "content": self._said})
        self._lines.put({**queued, "operation": "dequeue"})
        self._prompt = self._uuid()
        message = {"role": "user", "content": self._said}
        self._record("user", self._last, promptId=self._prompt, message=message)
        self._used += len(self._said) // 4

    def _respond(self, blocks: list[Value], stop: str) -> list[str]:
        """A response: a record for each block. Returns their uuids."""
        self._response += 1
        written, self._cached = self._used - self._cached, self._used
        output = sum(len(json.dumps(each)) for each in blocks) // 4
        usage = {
            "input_tokens": 4, "cache_creation_input_tokens": written - 4,
            "cache_read_input_tokens": self._used - written,
            "output_tokens": output,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard", "inference_geo": "", "iterations": [], "speed": "standard",
            "cache_creation": {
                "ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": written,
            },
        }  # fmt: skip
        made = []
        for block in blocks:
            message = {
                "id": f"msg_{self._response:08}", "type": "message", "role": "assistant",
                "model": "claude-sonnet-4-5", "content": [block], "stop_reason": stop,
                "stop_sequence": None, "usage": usage, "stop_details": None,
            }  # fmt: skip
            request = f"req_{self._response:08}"
            made.append(self._record("assistant", self._last, message=message, requestId=request))
        self._used += output
        return made

    def _round(self, long: int) -> None:
        r = self._random
        blocks: list[Value] = []
        if r.random() < 0.18:
            sealed = self._texts.sealed(600)
            thought = {"type": "thinking", "thinking": self._texts.words(60), "signature": sealed}
            blocks.append(thought)
        blocks.append({"type": "text", "text": self._texts.words(r.randrange(4, 40))})
        reads = r.random() < 0.24
        calls = []
        for at in range(2 if r.random() < 0.33 else 1):
            call = f"toolu_{self._response + 1:08}_{at}"
            path = f"/home/user/project/{self._texts.words(1)}.py"
            command = {"command": f"cat {path}", "description": f"Print {self._texts.words(2)}"}
            arguments = {"file_path": path} if reads else command
            name = "Read" if reads else "Bash"
            calls.append((call, path))
            blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments})
        made = self._respond(blocks, "tool_use")
        callers = made[-len(calls) :]
        results = []
        for caller, (call, path) in zip(callers, calls, strict=True):
            text = self._texts.text(long // 2 if long else self._size())
            long = 0
            results.append(self._result(caller, call, path if reads else "", text))
        self._round_uuids = [*made, *results]

    def _size(self) -> int:
        at = self._random.random() * (len(self.RESULTS) - 1)
        low, high = self.RESULTS[int(at)], self.RESULTS[int(at) + 1]
        return int(low + (high - low) * (at % 1))

    def _result(self, caller: str, call: str, path: str, text: str) -> str:
        told: Value = {
            "stdout": text, "stderr": "", "interrupted": False, "isImage": False,
            "noOutputExpected": False,
        }  # fmt: skip
        block: Value = {"tool_use_id": call, "type": "tool_result", "content": text}
        if path:
            listed = text.split("\n")
            block["content"] = "\n".join(f"{n}\t{line}" for n, line in enumerate(listed, 1))
            told = {"type": "text", "file": _file(path, text)}
        else:
            block["is_error"] = False
        self._used += len(block["content"]) // 4
        noted = {"toolUseResult": told, "sourceToolAssistantUUID": caller}
        message = {"role": "user", "content": [block]}
        return self._record("user", caller, None, noted, promptId=self._prompt, message=message)

    def _compact(self) -> None:
        self._compactions += 1
        kept, anchor = self._round_uuids, self._uuid()
        dropped = self._used - self.BASE
        listed = {"anchorUuid": anchor, "uuids": kept, "allUuids": kept}
        metadata = {
            "trigger": "auto", "preTokens": self._used, "durationMs": 41_000,
            "preservedSegment": {
                "headUuid": kept[0], "anchorUuid": anchor, "tailUuid": kept[-1],
            },
            "preservedMessages": listed, "postTokens": 9_500, "cumulativeDroppedTokens": dropped,
        }  # fmt: skip
        boundary = self._record(
            "system", None, {"logicalParentUuid": kept[-1]}, subtype="compact_boundary",
            content="Conversation compacted", isMeta=False, level="info", compactMetadata=metadata,
        )  # fmt: skip
        text = (
            "This session is being continued from a previous conversation that ran out of "
            "context. The summary below covers the earlier portion of the conversation.\n\n"
            f"Summary:\n{self._compactions}. {self._texts.text(6_000)}"
        )
        summary = {"role": "user", "content": text}
        self._record(
            "user", boundary, promptId=self._prompt, message=summary,
            isVisibleInTranscriptOnly=True, isCompactSummary=True, uuid=anchor,
        )  # fmt: skip
        self._used = self.BASE + len(text) // 4 + 5_000
        for _ in range(self.FILES):
            name = f"{self._texts.words(1)}.py"
            path = f"/home/user/project/{name}"
            content = {"type": "text", "file": _file(path, self._texts.text(self.RESTORED))}
            restored = {
                "type": "file", "filename": path, "content": content, "displayPath": name,
            }  # fmt: skip
            self._record("attachment", self._last, attachment=restored)
            self._used += self.RESTORED // 4
        self._cached = self.BASE


def _file(path: str, text: str) -> Value:
    count = text.count("\n") + 1
    return {
        "filePath": path, "content": text, "numLines": count, "startLine": 1, "totalLines": count,
    }  # fmt: skip


def _content(role: str, text: str) -> list[Value]:
    return [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]


def make(format: str, path: Path, size: int, long: int = 0) -> None:
    """Write a session of about `size` bytes."""
    with path.open("wb") as file:
        {"codex": Codex, "claude": Claude}[format](Lines(file)).write(size, long)


def main() -> None:
    """Make the file that the arguments name."""
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    numbers = [int(float(each) * MEGABYTE) for each in sys.argv[3:]]
    make(sys.argv[1], Path(sys.argv[2]), *(numbers or [123 * MEGABYTE]))


if __name__ == "__main__":
    main()
