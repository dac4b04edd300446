"""`thresher hook`: what another program runs before it compacts.

It lets the program go on at once unless a console of ours wants to be asked about that transcript;
then it waits for the answer there. Whatever goes wrong on our side lets the program go on, with one
line on standard error: a debugger must never break what it looks at. So the exit code is 0 but for
the one decision that a program reads from it, and arguments that are not understood are no error.

The agent waits for this process, so nothing is loaded before it is needed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, NoReturn

from . import place

if TYPE_CHECKING:
    from pathlib import Path

    from .messages import Answer, Watch

NAME = "hook"
SHORTEST = 60
"""Seconds that are counted with when the command line does not say how long the hook may take:
the least that any of the programs gives."""
MARGIN = 5.0
"""Seconds before its time is over in which the hook lets the program go on."""
LOOK_SECONDS = 0.05
MOST_INPUT = 1_000_000
MOST_TEXT = 4_000

_HELP = {"--help", "-h"}


def is_wanted(arguments: Sequence[str]) -> bool:
    """Whether a command line of ours is that of a hook (and not a question about it)."""
    return arguments[:1] == [NAME] and not _HELP.intersection(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the hook; `arguments` are those behind its name. Returns the exit code."""
    signal.signal(signal.SIGTERM, _ended)
    try:
        return _run(arguments)
    except (Exception, KeyboardInterrupt) as error:
        _say(f"went wrong ({type(error).__name__}: {error})")
        return 0


def _run(arguments: Sequence[str]) -> int:
    said = _input(sys.stdin)
    if said is None:
        return 0
    transcript = said.get("transcript_path")
    if not isinstance(transcript, str) or not transcript:
        _say("was told of no transcript_path")
        return 0
    folder = place.folder_of(transcript)
    if not (folder / place.WATCH).exists():
        return 0
    return _ask(folder, transcript, said, _seconds(arguments))


def _input(stream: IO[str] | None) -> dict[str, object] | None:
    """What the program said, or None where there is nothing to hold."""
    if stream is None or stream.isatty():
        _say("is run by another program, which tells it on standard input what it is about to do")
        return None
    data = stream.buffer.read(MOST_INPUT + 1) if hasattr(stream, "buffer") else stream.read()
    try:
        said = json.loads(data) if len(data) <= MOST_INPUT else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        _say("got no JSON object on standard input")
        return None
    event = said.get("hook_event_name")
    if event != "PreCompact":
        _say(f"is for PreCompact, not for {str(event)[:60]!r}")
        return None
    return said


def _seconds(arguments: Sequence[str]) -> float:
    """How long the hook may take, as the command line says it: `--timeout 600`."""
    words = [part for word in arguments for part in word.split("=", 1)]
    if words[:1] == ["--timeout"] and len(words) == 2 and words[1].isdecimal():
        return float(min(int(words[1]), 86_400))
    if words:
        _say(f"takes --timeout SECONDS, not {' '.join(words)[:100]!r}: counted with {SHORTEST}")
    return float(SHORTEST)


def _ask(folder: Path, transcript: str, said: dict[str, object], seconds: float) -> int:
    """Ask the console, if there is one, and tell the program what it says."""
    from ..sessions.journal import JOURNAL_NAME, running
    from . import messages as m
    from .programs import program_of

    if not place.is_private(folder):
        _say(f"does not trust {folder}: others can write there")
        return 0
    watch = m.get(folder / place.WATCH, m.Watch)
    journal = folder / JOURNAL_NAME
    program = program_of(watch.agent) if watch is not None else None
    if watch is None or program is None or not running(journal):
        return 0
    if not _same(watch, transcript):
        return 0
    now = time.time()
    request = m.Request(
        id=os.urandom(12).hex(),
        at=now,
        until=now + max(0.0, seconds - min(MARGIN, seconds / 4)),
        trigger=_text(said, "trigger"),
        instructions=_text(said, "custom_instructions"),
    )
    file, answered = (f(folder, request.id) for f in (place.request_file, place.answer_file))
    handle = m.put_and_hold(file, request)
    try:
        answer = _wait(answered, journal, request.until)
    finally:
        for left in (file, answered):
            left.unlink(missing_ok=True)
        os.close(handle)
    if answer is None:
        return 0
    told = program.told(answer)
    if told.out:
        # As bytes: the locale may know fewer characters than the user's focus has.
        os.write(1, told.out.encode("utf-8", "replace"))
    if told.err:
        _line(told.err)
    return told.code


def _wait(answered: Path, journal: Path, until: float) -> Answer | None:
    """The console's answer; None when there is none to wait for any more, which is said."""
    from ..sessions.journal import running
    from .messages import Answer, get

    while time.time() < until:
        if answered.exists():
            return get(answered, Answer)
        if not running(journal):
            # It may have answered just before it was closed.
            if answered.exists():
                continue
            _say("waits no longer: the console is gone, and the compaction goes on")
            return None
        time.sleep(LOOK_SECONDS)
    if (late := get(answered, Answer)) is not None:
        return late
    _say("waits no longer: its time is over, and the compaction goes on")
    return None


def _same(watch: Watch, transcript: str) -> bool:
    return watch.transcript == os.path.realpath(transcript)


def _text(said: dict[str, object], name: str) -> str:
    value = said.get(name)
    return value[:MOST_TEXT] if isinstance(value, str) else ""


def _say(what: str) -> None:
    """One line for whoever looks for the reason."""
    _line(f"thresher {NAME} {what}")


def _line(text: str) -> None:
    line = "".join(c if c.isprintable() else " " for c in text)
    try:
        sys.stderr.write(f"{line[:400]}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        # Nobody listens; that is no reason to fail.
        return


def _ended(_number: int, _frame: object) -> NoReturn:
    """The program ends its hook: what was put down is taken away on the way out."""
    raise SystemExit(0)
