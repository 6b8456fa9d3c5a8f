"""The worker process. It lives through every crash of the server: the SDK retries its polls."""

import asyncio
import os
import signal

from temporalio.client import Client
from temporalio.worker import Worker

from workload import Journey, step


async def main() -> None:
    client = await Client.connect(os.environ["FAIRLEAD_ADDRESS"])
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    queue = os.environ["TASK_QUEUE"]
    async with Worker(client, task_queue=queue, workflows=[Journey], activities=[step]):
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
