"""The shared fixtures, and the desk of an operator."""

import pytest
from harness import client, report_as, stage  # noqa: F401
from support import Stage

from desk import Desk


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    report_as("operator", config)


@pytest.fixture
def desk(stage: Stage) -> Desk:  # noqa: F811
    return Desk(stage)
