"""The command line: what can be asked, and what comes of it when something goes wrong.

Exit codes: 0 it worked; 1 it ran and found or met something wrong; 2 the arguments or the input
are no good; 130 interrupted by Ctrl+C; 141 the reader of a pipe went away. The commands themselves
are beside this, one file for each group; what they need is imported when they run.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cyclopts import App, CycloptsError, UnusedCliTokensError

import thresher.core
from thresher.core.errors import ThresherError
from thresher.core.hold import hook

from . import (
    doctor,
    hold,
    listing,
    looks,
    output,
    recorded,
    reference,
    report,
    screens,
    serve,
    verify,
)

INTERRUPTED = 130
READER_GONE = 141

HELP = """\
A debugger for context compaction: run an agent or open a recorded session, and see what the \
model is about to see and what each compaction removed, kept and rewrote, and why.

Without a command it lists the sessions of this machine."""


def make_app() -> App:
    """The command line with all its commands."""
    app = App(
        name="thresher",
        help=HELP,
        help_epilogue="Example: thresher demo",
        version=thresher.core.__version__,
        help_format="plaintext",
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    for group in (
        screens, listing, recorded, report, reference, looks, serve, doctor, verify, hold,
    ):  # fmt: skip
        group.add_to(app)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: that of the process); returns the exit code.

    No exception gets out: whatever goes wrong is one sentence on standard error.
    """
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    if hook.is_wanted(tokens):
        # Whatever is wrong with its arguments must not end it with an error.
        return hook.main(tokens[1:])
    _write_anything()
    try:
        code = _run(tokens)
        output.flush()
    except BrokenPipeError:
        _discard_output()
        return READER_GONE
    except SystemExit as left:
        # Rich, which prints the help, ends the program by itself where nobody reads any more.
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        _discard_output()
        return READER_GONE
    except output.OutputLost as error:
        _discard_output()
        output.complain(error.title, error.msg)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _run(tokens: list[str]) -> int:
    from . import crash

    try:
        app = make_app()
        try:
            result = app(tokens)
        except CycloptsError as error:
            output.complain("Wrong usage", _sentence(app, error, tokens))
            return 2
    except output.OutputLost:
        raise
    except ThresherError as error:
        output.complain(error.title, error.msg)
        return 2
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        return crash.told(error)
    return result if isinstance(result, int) else 0


def _sentence(app: App, error: CycloptsError, tokens: Sequence[str]) -> str:
    """What the parser did not understand, and where to read on."""
    known = [name for name in app if not name.startswith("-")]
    command = next((token for token in tokens if token in known), "")
    read_on = f"See `thresher {command} --help`." if command else "See `thresher --help`."
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        first = error.unused_tokens[0]
        if command:
            return f"{first!r} is one argument too many for `thresher {command}`. {read_on}"
        near = difflib.get_close_matches(first, known, n=1, cutoff=0.5)
        meant = f"Did you mean `thresher {near[0]}`? " if near else ""
        if not near and _is_file(first):
            meant = f"Did you mean `thresher open {first}`? "
        return f"there is no command {first!r}. {meant}{read_on}"
    error.verbose = False
    return f"{str(error).rstrip('. ')}. {read_on}" if str(error) else read_on


def _is_file(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _write_anything() -> None:
    """A stream whose encoding lacks a character shows its number instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Give what is still buffered nowhere to go, else the interpreter complains at its end."""
    with contextlib.suppress(OSError, ValueError), _null() as nothing:
        os.dup2(nothing, sys.stdout.fileno())


@contextlib.contextmanager
def _null() -> Iterator[int]:
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        yield nothing
    finally:
        os.close(nothing)
