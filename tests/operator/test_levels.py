"""How many levels a queue has, said in the file of settings and changed while the server runs."""

from __future__ import annotations

import json
import signal

from support import until, within_bound
from temporalio.client import Client
from temporalio.common import Priority
from temporalio.worker import Worker

from errand import Bench, Errand
from server import Server

NINE_IN_DEEP = '[[matching.priorityLevels]]\nvalue = 9\nconstraints = { taskQueueName = "deep" }\n'


async def levels(server: Server, queue: str) -> int:
    return len(json.loads(await server.run("describe", queue, "--json"))["levels"])


async def order_of(client: Client, queue: str) -> list[str]:
    """In which order one worker, with one place, gets the work of three workflows. The least urgent was first."""
    bench = Bench()
    bench.may_end.set()
    handles = []
    for key in (9, 7, 6):
        what = f"{queue}-{key}"
        handles.append(
            await client.start_workflow(
                Errand.run, what, id=what, task_queue=queue, priority=Priority(priority_key=key)
            )
        )
    # Workflow tasks first, so that all the work waits when the first of it is taken.
    async with Worker(client, task_queue=queue, workflows=[Errand], no_remote_activities=True):

        async def all_wait() -> bool:
            described = [await handle.describe() for handle in handles]
            return all(len(one.raw_description.pending_activities) == 1 for one in described)

        await until(all_wait)
    async with Worker(
        client, task_queue=queue, workflows=[Errand], activities=[bench.work], max_concurrent_activities=1
    ):
        for handle in handles:
            await within_bound(handle.result())
    return bench.begun


async def test_more_levels_without_a_restart(server: Server) -> None:
    server.write("[queues]\nfairness = 'on'\n")
    client = await server.start()
    assert sorted(await order_of(client, "flat")) == ["flat-6", "flat-7", "flat-9"], "above 5 all count as 5"
    assert await levels(server, "flat") == 5
    assert await levels(server, "deep") == 5

    server.write(NINE_IN_DEEP)
    server.process.send_signal(signal.SIGHUP)

    async def is_deep() -> bool:
        return await levels(server, "deep") == 9

    await until(is_deep)
    assert await levels(server, "flat") == 5
    assert await order_of(client, "deep") == ["deep-6", "deep-7", "deep-9"]
