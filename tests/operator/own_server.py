"""A server of a test's own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from support import within_bound
from temporalio.client import Client


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server of its own, whose budgets the test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "fairlead.toml"
        self.port = free_port()
        self.http_port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen | None = None

    def write(self, budgets: str) -> None:
        self.config.write_text(budgets)

    async def start(self, **environment: str) -> Client:
        self.process = subprocess.Popen(
            [os.environ["FAIRLEAD_BINARY"], "server", "--config", str(self.config),
             "--grpc-port", str(self.port), "--http-port", str(self.http_port),
             "--data-dir", str(self.folder / "data")],
            env=os.environ | environment,
        )
        return await within_bound(self.connect())

    async def connect(self) -> Client:
        while True:
            try:
                return await Client.connect(self.address)
            except RuntimeError:
                await asyncio.sleep(0.1)

    def kill(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait()

    async def run(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            os.environ["FAIRLEAD_BINARY"], "task-queue", *words, "--address", self.address,
            stdout=asyncio.subprocess.PIPE,
        )
        stdout, _ = await process.communicate()
        assert process.returncode == 0
        return stdout.decode()

    async def durable(self, path: str, **body: Any) -> dict[str, Any]:
        """Asks the Durable Workflow door."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.http_port}/api/{path}",
            data=json.dumps(body).encode(),
            headers={
                "Content-Type": "application/json",
                "X-Durable-Workflow-Control-Plane-Version": "2",
                "X-Durable-Workflow-Protocol-Version": "1.20",
            },
        )
        answer = await asyncio.to_thread(urllib.request.urlopen, request, timeout=60)
        return json.load(answer)

    async def admission(self, queue: str) -> dict[str, Any]:
        return json.loads(await self.run("describe", queue, "--json"))["admission"]

    async def metrics(self) -> str:
        answer = await asyncio.to_thread(
            urllib.request.urlopen, f"http://127.0.0.1:{self.http_port}/metrics", timeout=60
        )
        return answer.read().decode()
