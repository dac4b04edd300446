"""The frame of the project: what ships, what is imported when, what a checkout may contain."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from hatchling.builders.wheel import WheelBuilder

import thresher.core

ROOT = Path(__file__).parent.parent
ROOMS = ("core", "tui")


def modules_of(room: str) -> list[str]:
    paths = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / room).rglob("*.py"))
    return sorted(".".join(("thresher", *path.parts)).removesuffix(".__init__") for path in paths)


def files_of_the_checkout() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


IMPORT_ONE_BY_ONE = """
import importlib, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
    loaded = {"textual", "rich", "openai", "tiktoken", "thresher.tui"} & sys.modules.keys()
    if loaded:
        sys.exit(f"{module} loads {', '.join(sorted(loaded))}")
"""


def test_no_core_module_loads_a_screen_or_a_heavy_library_on_import() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_ONE_BY_ONE, *modules_of("core")],
        cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / ".dev")},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def test_modules_import_one_another_without_a_cycle() -> None:
    graph = grimp.build_graph("thresher.core", "thresher.tui", cache_dir=None)
    assert {*modules_of("core"), *modules_of("tui")} <= graph.modules
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()


def test_every_file_of_the_two_rooms_ships_in_the_wheel() -> None:
    shipped = {
        Path(file.path).relative_to(ROOT): Path(file.distribution_path)
        for file in WheelBuilder(str(ROOT)).recurse_included_files()
    }
    present = {
        path.relative_to(ROOT)
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == {path: Path("thresher") / path for path in present}


def test_the_version_of_the_package_is_the_one_in_the_code() -> None:
    assert WheelBuilder(str(ROOT)).metadata.version == thresher.core.__version__


# Put together here, so that this file does not hold the words that it looks for.
UNWANTED = {
    "a registry host": "|".join(
        ("py" + r"pi\.org", "python" + "hosted", r"registry\.npm" + "js", r"deb\.deb" + "ian")
    ),
    "a path of one machine": "|".join(("/ro" + "ot/", "/wo" + "rk/", "/Us" + "ers/[a-z]")),
    "a key": "|".join((r"\bsk-" + r"[A-Za-z0-9_-]{24,}", "-----BEGIN " + "[A-Z ]*PRIVATE KEY")),
}


@pytest.mark.parametrize("what", UNWANTED)
def test_no_file_of_the_checkout_holds(what: str) -> None:
    pattern = re.compile(UNWANTED[what].encode())
    recorded_elsewhere = {".jsonl", ".svg"}
    found = [
        str(path.relative_to(ROOT))
        for path in files_of_the_checkout()
        if path.suffix not in recorded_elsewhere and pattern.search(path.read_bytes())
    ]
    assert found == []


def test_the_readme_and_the_checks_run_the_same_commands() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    marked = dict(re.findall(r"^# README: (\w+)\n(.+)$", script, re.MULTILINE))
    environment = "python3 -m venv .venv && . .venv/bin/activate"
    blocks = re.findall(r"^```sh\n(.+?)\n```$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert f"{environment} && {marked['install']} && {marked['test']}" in blocks
    run = marked["install"].replace("-e '.[dev]'", ".")
    assert f"{environment} && {run} && thresher demo" in blocks


def test_the_constraints_pin_every_requirement_of_the_project() -> None:
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9.-]+==[0-9a-z.]+", pin) for pin in pins)
    pinned = {pin.partition("==")[0].lower() for pin in pins}
    project = WheelBuilder(str(ROOT)).metadata.core
    needed = [*project.dependencies, *project.optional_dependencies["dev"], "hatchling"]
    assert {re.split(r"[<>=\[]", line)[0].lower() for line in needed} <= pinned


def test_a_test_cannot_reach_another_machine(strays: list[str]) -> None:
    with socket.socket() as probe, pytest.raises(OSError, match="only this machine"):
        probe.connect(("192.0.2.1", 80))
    assert strays == ["192.0.2.1"]
    strays.clear()
