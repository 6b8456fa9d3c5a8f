"""A server process that can be killed and started again on the same data."""

from __future__ import annotations

import asyncio
import shlex
import signal
import socket
import sys
import time
from pathlib import Path

START_SECONDS_MAX = 30.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ServerDidNotStart(Exception):
    """The server ended or kept its port closed; the end of its log is on stderr."""


class Server:
    """Starts the command in a template; `{port}`, `{http_port}` and `{data}` are filled in."""

    def __init__(self, template: str, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        filled = template.format(
            port=self.port, http_port=free_port(), data=folder / "data"
        )
        self.command = shlex.split(filled)
        self.log = folder / "server.log"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.command, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not await self.is_listening():
            if self.process.returncode is not None or time.monotonic() > deadline:
                print(self.log_tail(), file=sys.stderr)
                raise ServerDidNotStart(f"port {self.port} stayed closed")
            await asyncio.sleep(0.02)

    async def is_listening(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    async def _end(self, how: signal.Signals) -> None:
        if self.process is None or self.process.returncode is not None:
            return
        self.process.send_signal(how)
        await self.process.wait()

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
