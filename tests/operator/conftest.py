"""The shared fixtures, and the desk of an operator."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import client, report_as, stage  # noqa: F401
from support import Stage

from desk import Desk
from server import Server


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    report_as("operator", config)


@pytest.fixture
def desk(stage: Stage) -> Desk:  # noqa: F811
    return Desk(stage)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Not yet started."""
    one = Server(tmp_path)
    one.write("")
    yield one
    one.stop()
