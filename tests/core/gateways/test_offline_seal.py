from __future__ import annotations

import base64
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.gateways.base import ErrorKind, GatewayError, ModelRequest
from thresher.core.gateways.offline import OfflineGateway
from thresher.core.gateways.offline_seal import seal, unseal
from thresher.core.items import CompactionSummary, FunctionCall, FunctionCallOutput, user


@given(st.text())
def test_only_what_the_stand_in_sealed_is_read_back(text: str) -> None:
    assert unseal(seal(text)) == text.encode("utf-8", "backslashreplace").decode()
    assert unseal(text) == ""


def test_a_foreign_or_broken_item_stays_closed() -> None:
    packed = base64.b64encode(b"offline-stand-in:" + b"not packed").decode()
    assert unseal(packed) == ""
    assert unseal(base64.b64encode(zlib.compress(b"secret")).decode()) == ""


def test_a_bomb_is_not_unpacked_whole() -> None:
    assert len(unseal(seal("x" * (1 << 22)))) <= 1 << 20


def request(*items: object) -> ModelRequest:
    return ModelRequest(model="m", items=items)  # type: ignore[arg-type]  # items of several kinds


async def test_the_stand_in_plays_a_provider_that_compacts(tmp_path: Path) -> None:
    gateway = OfflineGateway(tmp_path)
    sealed = await gateway.compact_remotely(
        request(
            user("Find the outage."),
            FunctionCall("c", "read_file", '{"path": "logs/server.log"}'),
            FunctionCallOutput("c", "12:00 ERROR down\n12:05 INFO up\n", "read_file"),
        )
    )
    assert sealed.usage is not None
    assert "Find the outage." in unseal(sealed.encrypted)
    again = await gateway.compact_remotely(request(CompactionSummary(encrypted=sealed.encrypted)))
    assert "Find the outage." in unseal(again.encrypted)


async def test_it_refuses_what_is_above_its_window(tmp_path: Path) -> None:
    gateway = OfflineGateway(tmp_path, window=100)
    with pytest.raises(GatewayError) as caught:
        await gateway.compact_remotely(request(user("word " * 500)))
    assert caught.value.kind is ErrorKind.OVERFLOW
