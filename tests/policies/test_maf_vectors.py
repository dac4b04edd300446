from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.policies.maf_driver import run

SCHEMA = "maf-vectors/1"
OWN = Path(__file__).parents[1] / "vectors" / "maf.json"


def _read(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("schema") != SCHEMA:
        raise pytest.UsageError(f"--vectors {path}: its schema is not {SCHEMA}")
    vectors: list[dict[str, Any]] = document["vectors"]
    return vectors


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    own = [(vector["id"], vector) for vector in _read(OWN)]
    here = metafunc.config.invocation_params.dir
    more = [
        (f"{Path(name).stem}:{vector['id']}", vector)
        for name in metafunc.config.getoption("--vectors", default=[])
        for vector in _read(here / name)
    ]
    if metafunc.function is test_what_is_derived_from_the_rules_agrees:
        own, more = ([(i, v) for i, v in some if "derived" in v] for some in (own, more))
    if "vector" in metafunc.fixturenames:
        both = own + more
        metafunc.parametrize("vector", [v for _, v in both], ids=[i for i, _ in both])


def test_a_vector_comes_out_as_recorded(vector: Mapping[str, Any]) -> None:
    outcome = run(vector)
    for field, expected in vector["expected"].items():
        agree(outcome, field, expected)


def test_what_is_derived_from_the_rules_agrees(vector: Mapping[str, Any]) -> None:
    outcome = run(vector)
    for field, expected in vector["derived"].items():
        agree(outcome, field, expected)


def test_both_designs_have_their_vectors() -> None:
    found = [vector["impl"] for vector in _read(OWN)]
    assert (found.count("dotnet"), found.count("python")) == (34, 34)


def agree(outcome: Mapping[str, Any], field: str, expected: Any) -> None:
    match field:
        case "included":
            assert len(outcome["included"]) == len(expected), outcome["included"]
            for found, wanted in zip(outcome["included"], expected, strict=True):
                same_message(found, wanted)
        case "included_at":
            for at, wanted in expected.items():
                same_message(outcome["included"][int(at)], wanted)
        case "groups":
            assert len(outcome["groups"]) == len(expected)
            for found, wanted in zip(outcome["groups"], expected, strict=True):
                assert {key: found[key] for key in wanted} == wanted
        case "group_at":
            for at, wanted in expected.items():
                found = outcome["groups"][int(at)]
                assert {key: found[key] for key in wanted} == wanted
        case "state" | "message_tokens" | "excluded_group_count":
            found = outcome[field]
            assert {key: found[key] for key in expected} == expected
            if field == "message_tokens":
                assert set(found) == set(expected)
        case "summarizer_request":
            assert outcome["summarizer_requests"] == [expected]
        case "included_groups_less_than":
            assert outcome["included_groups"] < expected
        case "logs":
            assert len(outcome["logs"]) == len(expected or [])
            for found, wanted in zip(outcome["logs"], expected or [], strict=True):
                assert (found.level, found.code) == (wanted["level"], wanted["code"])
                assert found.fields == wanted.get("fields", {})
        case "thresholds":
            for key, wanted in expected.items():
                assert outcome[key] == wanted
        case _:
            assert outcome[field] == expected, field


def same_message(found: Any, wanted: Any) -> None:
    if isinstance(wanted, str):
        assert found == wanted
        return
    assert isinstance(found, dict), f"{found} stays, where a written message is expected"
    for key, value in wanted.items():
        match key:
            case "text_contains":
                assert all(part in found["text"] for part in value)
            case "text_spec":
                assert found["text"] == spelt_out(value)
            case _:
                assert found[key] == value


def spelt_out(spec: Mapping[str, Any]) -> str:
    room = spec["length"] - len(spec["prefix"]) - len(spec["suffix"])
    fill = spec["fill"] * (room // len(spec["fill"]) + 1)
    return f"{spec['prefix']}{fill[:room]}{spec['suffix']}"
