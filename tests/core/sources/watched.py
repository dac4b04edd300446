"""Opens sessions while the interpreter tells every file, process and connection; run by itself.

    python watched.py FILE ...

Prints one JSON line for each event that is not plain reading: `["open", path, mode]` for every file
below the folders of the sessions or opened for writing, and the name of every other event that
starts something or goes out to the network.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

told: list[list[str]] = []
ON = False
STARTS = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.")
NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "urllib.")
CHANGES = (
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.utime",
    "os.link", "os.symlink", "shutil.",
)  # fmt: skip


def hook(event: str, arguments: tuple[object, ...]) -> None:
    if not ON:
        return
    if event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if isinstance(path, int):
            return
        told.append(["write" if writes else "open", os.fsdecode(path)])
    elif event.startswith(STARTS) or event.startswith(NETWORK):
        told.append(["start", event])
    elif event == "sqlite3.connect":
        database = str(arguments[0])
        # SQLite itself holds to these two: such a connection takes no lock and makes no file.
        reads = database.endswith(("immutable=1", "mode=ro"))
        told.append(["open" if reads else "write", database, event])
    elif event.startswith(CHANGES):
        told.append(["write", str(arguments[0]), event])


def look(path: Path) -> None:
    from thresher.core.sources.opening import choices, open_source

    list(choices(path))
    source = open_source(path)
    list(source.read())
    list(source.requests())
    source.context_raw()
    tail = source.tail()
    list(tail.more())
    list(tail.more())


def main() -> None:
    global ON
    from thresher.core.sources.finders import finders
    from thresher.core.sources.session_index import SessionIndex

    sys.addaudithook(hook)
    for each in sys.argv[1:]:
        # The first time loads modules; what counts is what a session does.
        look(Path(each))
        ON = True
        look(Path(each))
        ON = False
    ON = True
    index = SessionIndex()
    for finder in finders():
        list(index.sessions(finder))
    index.save()
    ON = False
    for row in told:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
