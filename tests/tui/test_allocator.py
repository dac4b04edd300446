from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

LONG_LINES = """
import os
from thresher.tui.allocator import keep_large_blocks_apart

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

assert keep_large_blocks_apart()
small = []
for _ in range(3):
    line = bytearray(b"x") * 20_000_000
    small.append(bytes(100_000))
    before = held()
    del line
    small.append(bytes(100_000))
print(before - held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps such blocks")
def test_what_a_very_long_line_took_is_given_back_at_once() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LONG_LINES]
    ran = subprocess.run(command, capture_output=True, check=True, env=env)
    assert int(ran.stdout) > 18_000_000
