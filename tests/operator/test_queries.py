"""Questions to workflows whose workers are gone."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from support import until, within_bound
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from errand import Errand
from server import Server


async def is_asleep(handle: WorkflowHandle) -> bool:
    """Its first task is done, and it waits for an activity that nobody does."""
    return len((await handle.describe()).raw_description.pending_activities) == 1


async def start_and_leave(client: Client) -> None:
    handle = await client.start_workflow(Errand.run, "a", id="errand", task_queue="errands")
    async with Worker(client, task_queue="errands", workflows=[Errand], no_remote_activities=True):
        await until(lambda: is_asleep(handle))


async def test_whoever_asks_is_told_that_nobody_polls(server: Server) -> None:
    client = await server.start()
    await within_bound(start_and_leave(client))
    server.kill(signal.SIGKILL)
    client = await server.start()
    question = client.get_workflow_handle("errand").query("anything", rpc_timeout=timedelta(seconds=3))
    with pytest.raises(RPCError) as refusal:
        await within_bound(question)
    assert refusal.value.status == RPCStatusCode.FAILED_PRECONDITION
    assert refusal.value.message == "no poller seen for task queue recently, worker may be down"
