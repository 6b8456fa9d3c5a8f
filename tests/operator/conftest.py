"""The shared fixtures, the desk of an operator, and a server of a test's own."""

import signal
from pathlib import Path
from typing import AsyncIterator

import pytest
from harness import client, report_as, stage  # noqa: F401
from support import Stage

from desk import Desk
from own_server import Server


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    report_as("operator", config)


@pytest.fixture
def desk(stage: Stage) -> Desk:  # noqa: F811
    return Desk(stage)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    one = Server(tmp_path)
    one.write("")
    yield one
    if one.process is not None and one.process.poll() is None:
        one.kill(signal.SIGTERM)
