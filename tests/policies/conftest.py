"""More vectors for the policies than those that lie in tests/vectors."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    # Without a path below this folder on the command line pytest reads this file too late for an
    # option; then there is none, and the tests run on their own vectors alone.
    parser.addoption(
        "--vectors",
        action="append",
        default=[],
        metavar="FILE",
        help="run the vectors of this file as well (may be given several times)",
    )
