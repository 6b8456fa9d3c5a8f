"""The server is killed under a worker that knows nothing of it, and comes back."""

import asyncio
import os
import signal
import socket
import subprocess
import time

import httpx
import pytest
from durable_workflow import Client

from conftest import Stage

BINARY = os.environ.get("FAIRLEAD_BINARY")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
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


def test_runs_and_workers_outlive_kill_9(server):
    async def script():
        async with Client(server.url, namespace="default") as client:
            stage = Stage(client, "crash")
            async with stage.worker():
                waiting = await stage.start("approval")
                assert (await waiting.query("status"))["result"]["approved_by"] is None
                sleeping = await stage.start("impatient", 3)
                racing = await stage.start("race-waiting", 3600)
                assert (await racing.query("status"))["result"] is None
                await asyncio.sleep(0.5)
                server.kill()
                server.start()
                await waiting.signal("approve", ["ada"])
                assert (await stage.result(waiting, timeout=60))["greeting"] == "hello, ada"
                assert await stage.result(sleeping, timeout=60) is False
                await racing.signal("approve", ["bo"])
                assert await stage.result(racing, timeout=60) == ["approved", "bo"]

    asyncio.run(script())
