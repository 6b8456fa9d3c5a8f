"""A worker of the SDK for each test, and results in the words of tools/parts."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import httpx
import pytest
from durable_workflow import Client, Worker

import app

URL = os.environ["DURABLE_URL"]
BINARY = os.environ.get("FAIRLEAD_BINARY")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    name = report.nodeid.replace("::", ": ").removesuffix("]")
    if report.when == "call" and report.passed:
        print(f"\nok - durable: {name}")
    elif report.failed:
        print(f"\nnot ok - durable: {name} ({report.when})")
    elif report.skipped:
        print(f"\nskip - durable: {name}")


class Stage:
    """A client and a worker on a queue that no other test uses."""

    def __init__(self, client: Client, queue: str) -> None:
        self.client = client
        self.queue = queue

    async def start(self, workflow_type: str, *arguments: Any, workflow_id: str | None = None, **options: Any) -> Any:
        return await self.client.start_workflow(
            workflow_type=workflow_type,
            workflow_id=workflow_id or f"{workflow_type}-{uuid.uuid4().hex}",
            task_queue=self.queue,
            input=list(arguments),
            **options,
        )

    async def result(self, handle: Any, timeout: float = 30.0) -> Any:
        return await handle.result(poll_interval=0.05, timeout=timeout)

    async def run(self, workflow_type: str, *arguments: Any) -> Any:
        return await self.result(await self.start(workflow_type, *arguments))

    async def event_types(self, handle: Any) -> list[str]:
        types: list[str] = []
        token = None
        while True:
            page = await self.client.get_history(handle.workflow_id, handle.run_id, next_page_token=token)
            types += [event["event_type"] for event in page["events"]]
            token = page.get("next_page_token")
            if token is None:
                return types

    async def is_registered(self, worker: Worker) -> bool:
        workers = await self.client.list_workers(task_queue=self.queue)
        return any(each.worker_id == worker.worker_id for each in workers.workers)

    async def until(self, check: Callable[[], Coroutine[Any, Any, bool]], timeout: float = 30.0) -> None:
        """Looks again and again until it is so."""

        async def look() -> None:
            while not await check():
                await asyncio.sleep(0.02)

        await asyncio.wait_for(look(), timeout)

    @contextlib.asynccontextmanager
    async def worker(self, **options: Any) -> AsyncIterator[Worker]:
        settings: dict[str, Any] = {"workflows": app.WORKFLOWS, "activities": app.ACTIVITIES, "poll_timeout": 5.0}
        worker = Worker(self.client, task_queue=self.queue, **(settings | options))
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            await worker.stop()
            await running


async def play(script: Callable[[Stage], Coroutine[Any, Any, None]], with_worker: bool) -> None:
    async with Client(URL, namespace="default") as client:
        stage = Stage(client, f"queue-{uuid.uuid4().hex}")
        if not with_worker:
            await script(stage)
            return
        async with stage.worker():
            await script(stage)


@pytest.fixture
def perform() -> Callable[..., None]:
    """Runs a coroutine function with a stage, and with a worker unless told otherwise."""

    def run(script: Callable[[Stage], Coroutine[Any, Any, None]], with_worker: bool = True) -> None:
        asyncio.run(play(script, with_worker))

    return run


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One of its own for a test, which may kill it."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.ports = (free_port(), free_port())
        self.url = f"http://127.0.0.1:{self.ports[1]}"

    def start(self) -> None:
        assert BINARY is not None
        command = [BINARY, "server", "--grpc-port", str(self.ports[0]), "--http-port", str(self.ports[1]),
                   "--data-dir", str(self.folder / "data")]
        self.process = subprocess.Popen(
            command, env=os.environ | {"DW_AUTH_DRIVER": "none"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/api/health").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError("the server did not come up")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server(tmp_path):
    if BINARY is None:
        pytest.skip("FAIRLEAD_BINARY is not set")
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()
