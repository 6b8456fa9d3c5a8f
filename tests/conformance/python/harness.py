"""The fixtures and the report lines that the suites written with pytest share."""

from __future__ import annotations

import os
import sys
import uuid

import pytest
from temporalio.client import Client

from support import Stage


async def connect() -> Client:
    return await Client.connect(
        os.environ["FAIRLEAD_ADDRESS"],
        namespace=os.environ.get("FAIRLEAD_NAMESPACE", "default"),
    )


@pytest.fixture(scope="session")
async def client() -> Client:
    return await connect()


@pytest.fixture
async def client_elsewhere() -> Client:
    """A client that shares nothing with the one that the stage uses."""
    return await connect()


@pytest.fixture
def stage(client: Client) -> Stage:
    """Fresh names on the server, so that no run of a test meets another run."""
    return Stage(client, f"conformance-{uuid.uuid4()}")


class Reporter:
    """Prints one line a test on stdout and the details of a failure on stderr."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.failed: set[str] = set()

    @staticmethod
    def sentence(nodeid: str) -> str:
        return nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.fail(report.nodeid, report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.fail(report.nodeid, report.longreprtext)
        elif report.when == "teardown" and report.nodeid not in self.failed:
            print(f"ok - {self.language}: {self.sentence(report.nodeid)}", flush=True)

    def fail(self, nodeid: str, details: str) -> None:
        if nodeid in self.failed:
            return
        self.failed.add(nodeid)
        errors = [line[2:] for line in details.splitlines() if line.startswith("E ")]
        reason = " ".join(errors[0].split()) if errors else "see the details on stderr"
        print(
            f"not ok - {self.language}: {self.sentence(nodeid)}: {reason}", flush=True
        )
        print(details, file=sys.stderr, flush=True)


def report_as(language: str, config: pytest.Config) -> None:
    """Puts our lines in the place of pytest's own report."""
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Reporter(language))
