from __future__ import annotations

from pathlib import Path

import pytest

from thresher.core.config import Settings, Wire, default_path, load
from thresher.core.errors import ThresherError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_without_anything_all_values_are_defaults() -> None:
    settings = load(environ={})
    assert settings == Settings()
    assert settings.source("model.base_url") == "default"
    assert settings.stated_limits() is None


def test_the_users_file_is_found_in_the_config_folder() -> None:
    default_path().parent.mkdir(parents=True)
    default_path().write_text('[model]\nname = "from-file"\n')
    assert load(environ={}).model.name == "from-file"


def test_flags_beat_the_environment_and_that_beats_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path, '[model]\nname = "file"\nbase_url = "https://file/v1"\nwindow = 9000\n'
    )
    environ = {"OPENAI_MODEL": "env", "OPENAI_BASE_URL": "https://env/v1", "OPENAI_WIRE_API": ""}
    flags = {"model.name": "flag", "model.wire": "chat", "model.window": None}
    settings = load(path, environ=environ, flags=flags)
    assert (settings.model.name, settings.source("model.name")) == ("flag", "flag --model")
    assert settings.model.base_url == "https://env/v1"
    assert settings.source("model.base_url") == "environment variable OPENAI_BASE_URL"
    assert (settings.model.window, settings.source("model.window")) == (9000, str(path))
    assert settings.model.wire is Wire.CHAT
    stated = settings.stated_limits()
    assert stated is not None
    assert (stated.window, stated.source) == (9000, str(path))


def test_the_constants_of_a_policy_can_come_from_both(tmp_path: Path) -> None:
    path = written(tmp_path, "[compaction.params]\nthreshold = 100\nkeep = 3\n")
    settings = load(path, environ={}, flags={"compaction.params.threshold": 200})
    assert settings.compaction.params == {"threshold": 200, "keep": 3}
    assert settings.source("compaction.params.keep") == str(path)
    assert settings.source("compaction.params.threshold") == "flag --threshold"


@pytest.mark.parametrize(
    ("base_url", "wire"),
    [
        ("https://api.openai.com/v1", Wire.RESPONSES),
        ("https://api.openai.com.evil.example/v1", Wire.CHAT),
        ("http://127.0.0.1:1/v1", Wire.CHAT),
    ],
)
def test_the_wire_follows_the_server_unless_chosen(base_url: str, wire: Wire) -> None:
    assert load(environ={"OPENAI_BASE_URL": base_url}).model.wire_in_use is wire
    chosen = load(environ={"OPENAI_BASE_URL": base_url, "OPENAI_WIRE_API": "offline"})
    assert chosen.model.wire_in_use is Wire.OFFLINE


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[model]\nwindow = 0\n", "model.window"),
        ('[model]\nwindow = "many"\n', "model.window"),
        ('[model]\nwire = "telegraph"\n', "model.wire"),
        ("[model]\nnane = 1\n", "nane"),
        ("[modle]\nname = 1\n", "modle"),
        ("[sources]\nx = 1\n", "sources"),
        ("model = 3\n", "model"),
        ('[agent]\napproval = "sometimes"\n', "agent.approval"),
        ("[compaction]\nparams = 3\n", "compaction.params"),
        ("[model\n", "TOML"),
        ("a = " + "[" * 5000, "TOML"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ThresherError) as caught:
        load(path, environ={})
    assert told in caught.value.msg
    assert str(path) in caught.value.msg


def test_a_mistake_in_the_environment_names_the_variable() -> None:
    with pytest.raises(ThresherError, match="OPENAI_WIRE_API"):
        load(environ={"OPENAI_WIRE_API": "telegraph"})


def test_a_file_that_is_named_must_be_there_and_readable(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="does not exist"):
        load(tmp_path / "none.toml", environ={})
    with pytest.raises(ThresherError, match="cannot be read"):
        load(tmp_path, environ={})
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ThresherError, match="UTF-8"):
        load(tmp_path / "bad.toml", environ={})


def test_a_key_is_never_part_of_the_settings() -> None:
    settings = load(environ={"OPENAI_API_KEY": "sk-not-to-be-seen"})
    assert "sk-not-to-be-seen" not in repr(settings)
