"""The worker process. It lives through every crash of the server: the SDK retries its polls."""

import asyncio
import os
import signal
import time

from temporalio.client import Client
from temporalio.worker import Worker

from workload import Companion, Journey, step


CONNECT_SECONDS_MAX = 60.0


async def connect() -> Client:
    """The first kill may come before this process is up: then the server is not there yet."""
    deadline = time.monotonic() + CONNECT_SECONDS_MAX
    while True:
        try:
            return await Client.connect(os.environ["FAIRLEAD_ADDRESS"])
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)


async def main() -> None:
    client = await connect()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    queue = os.environ["TASK_QUEUE"]
    async with Worker(
        client, task_queue=queue, workflows=[Journey, Companion], activities=[step]
    ):
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
