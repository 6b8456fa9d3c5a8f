"""Lets the Python suite use the shared fixtures and report in its own name."""

import pytest

from harness import client, client_elsewhere, report_as, stage  # noqa: F401


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    report_as("python", config)
