from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from thresher.core.config import ModelSettings, Settings
from thresher.core.errors import ThresherError
from thresher.core.gateways.base import Gateway
from thresher.core.gateways.make import make_gateway, model_name


def settings(**model: object) -> Settings:
    return Settings(model=msgspec.convert({"name": "m", **model}, ModelSettings))


@pytest.mark.parametrize(
    ("model", "wire", "name"),
    [
        ({}, "responses", "api.openai.com"),
        ({"wire": "chat"}, "chat", "api.openai.com"),
        ({"base_url": "https://llm.example:8443/v1/"}, "chat", "llm.example:8443"),
        ({"base_url": "https://x.example/v1", "wire": "responses"}, "responses", "x.example"),
        ({"wire": "offline"}, "offline", "offline stand-in, not a model"),
    ],
)
def test_the_wire_decides_and_the_name_tells(
    tmp_path: Path, model: dict[str, object], wire: str, name: str
) -> None:
    gateway: Gateway = make_gateway(settings(**model), tmp_path, environ={"OPENAI_API_KEY": "k"})
    assert (gateway.wire, gateway.name) == (wire, name)


def test_a_missing_key_names_its_variable(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="MY_KEY"):
        make_gateway(settings(key_variable="MY_KEY"), tmp_path, environ={"OPENAI_API_KEY": "k"})


@pytest.mark.parametrize(
    "model",
    [
        {"base_url": "http://127.0.0.1:8080/v1"},
        {"base_url": "http://localhost:8080/v1"},
        {"base_url": "http://[::1]:8080/v1"},
        {"base_url": "https://open.example/v1", "key_variable": ""},
    ],
)
def test_a_server_on_this_machine_and_one_without_keys_need_none(
    tmp_path: Path, model: dict[str, object]
) -> None:
    assert make_gateway(settings(**model), tmp_path, environ={}).wire == "chat"


def test_a_key_with_a_newline_in_it_is_told_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="OPENAI_API_KEY") as caught:
        make_gateway(settings(), tmp_path, environ={"OPENAI_API_KEY": "abc\ndef"})
    assert "abc" not in caught.value.msg


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "api.openai.com/v1",
        "ftp://host/v1",
        "https://",
        "https://host:port/v1",
        "https://user:hidden@host/v1",
        "https://host/v1?key=1",
        "https://host/v1 ",
        "https://host/v1/chat/completions",
        "https://host/v1/responses/",
        "https://[::1/v1",
    ],
)
def test_a_base_url_that_cannot_be_one_is_refused(tmp_path: Path, base_url: str) -> None:
    with pytest.raises(ThresherError, match="base URL") as caught:
        make_gateway(settings(base_url=base_url), tmp_path, environ={"OPENAI_API_KEY": "k"})
    assert "hidden" not in caught.value.msg


def test_a_missing_model_name_says_how_to_give_one(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="--model"):
        make_gateway(settings(name=" "), tmp_path, environ={"OPENAI_API_KEY": "k"})
    assert model_name(settings(wire="offline", name="")) == "offline-stand-in"
