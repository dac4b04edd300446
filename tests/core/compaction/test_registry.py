from __future__ import annotations

from typing import Any

import pytest

from thresher.core.compaction.policies.registry import make, params_type, policies
from thresher.core.compaction.policies.teaching import TeachingParams
from thresher.core.errors import ThresherError


@pytest.mark.parametrize("name", policies())
def test_every_policy_is_listed_by_its_own_name_and_made_from_its_constants(name: str) -> None:
    policy = make(name)
    assert policy.name == name
    assert isinstance(policy, policies()[name])
    assert policy.params == params_type(name)()
    assert policy.title


def test_constants_are_taken_from_text_as_the_command_line_gives_them() -> None:
    policy = make("teaching", {"threshold": "1234", "threshold_share": "0.5"})
    assert policy.params == TeachingParams(threshold=1234, threshold_share=0.5)


@pytest.mark.parametrize(
    "params", [{"treshold": 1}, {"threshold": "many"}, {"threshold": 0}, {"threshold_share": 2}]
)
def test_a_constant_that_cannot_be_is_refused_with_those_that_can(params: dict[str, Any]) -> None:
    with pytest.raises(ThresherError, match="Its settings are: threshold, threshold_share"):
        make("teaching", params)


def test_an_unknown_policy_is_refused_with_those_there_are() -> None:
    with pytest.raises(ThresherError, match="There are: teaching, keep-all"):
        make("nope")
