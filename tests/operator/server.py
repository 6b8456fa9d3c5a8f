"""A server of its own, whose budgets the test writes, and its second door spoken to in plain HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from support import within_bound
from temporalio.client import Client


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Door:
    """Durable Workflow's HTTP API, for any number of threads: each keeps a connection of its own."""

    def __init__(self, port: int, namespace: str) -> None:
        self.port = port
        self.headers = {
            "Content-Type": "application/json",
            "X-Namespace": namespace,
            "X-Durable-Workflow-Control-Plane-Version": "2",
            "X-Durable-Workflow-Protocol-Version": "1.20",
        }
        self.local = threading.local()

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        # The server hangs up on those who are silent for long.
        if time.monotonic() - getattr(self.local, "used", -math.inf) > 3:
            self.local.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self.local.connection.connect()
            self.local.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = self.local.connection
        connection.request(method, f"/api/{path}", None if body is None else json.dumps(body), self.headers)
        answer = connection.getresponse()
        text = answer.read()
        self.local.used = time.monotonic()
        return answer.status, json.loads(text)

    def get(self, path: str) -> dict[str, Any]:
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return answer

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        status, answer = self.ask("POST", path, body)
        assert status in (200, 201), answer
        return answer

    def start(self, workflow_id: str, queue: str) -> None:
        self.post("workflows", workflow_id=workflow_id, workflow_type="errand", task_queue=queue)

    def register(self, worker: str, queue: str, **said: Any) -> None:
        self.post("worker/register", worker_id=worker, task_queue=queue, runtime="test", **said)

    def poll(self, kind: str, worker: str, queue: str, seconds: int = 30) -> dict[str, Any]:
        """The whole answer: whether there is a task, and if not, why."""
        return self.post(f"worker/{kind}-tasks/poll", worker_id=worker, task_queue=queue, timeout_seconds=seconds)

    def take(self, kind: str, worker: str, queue: str) -> dict[str, Any]:
        task = self.poll(kind, worker, queue)["task"]
        assert task is not None, f"no {kind} task for {worker}"
        return task

    def complete(self, task: dict[str, Any], *commands: dict[str, Any]) -> None:
        """A workflow task."""
        self.post(
            f"worker/workflow-tasks/{task['task_id']}/complete",
            lease_owner=task["lease_owner"],
            workflow_task_attempt=task["workflow_task_attempt"],
            commands=list(commands),
        )

    def complete_activity(self, task: dict[str, Any]) -> None:
        self.post(
            f"worker/activity-tasks/{task['task_id']}/complete",
            lease_owner=task["lease_owner"],
            activity_attempt_id=task["activity_attempt_id"],
        )

    def admission(self, queue: str) -> dict[str, Any]:
        return self.get(f"task-queues/{queue}")["admission"]


class Server:
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
            env=os.environ | {"DW_AUTH_DRIVER": "none"} | environment,
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

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill(signal.SIGTERM)

    def door(self, namespace: str = "default") -> Door:
        return Door(self.http_port, namespace)

    async def run(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            os.environ["FAIRLEAD_BINARY"], "task-queue", *words, "--address", self.address,
            stdout=asyncio.subprocess.PIPE,
        )
        stdout, _ = await process.communicate()
        assert process.returncode == 0
        return stdout.decode()

    async def admission(self, queue: str, namespace: str = "default") -> dict[str, Any]:
        shown = await self.run("describe", queue, "--namespace", namespace, "--json")
        return json.loads(shown)["admission"]

    async def metrics(self) -> str:
        address = f"http://127.0.0.1:{self.http_port}/metrics"
        answer = await asyncio.to_thread(urllib.request.urlopen, address, timeout=60)
        return answer.read().decode()
