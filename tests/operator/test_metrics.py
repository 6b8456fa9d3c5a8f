"""Figures that operators of Temporal have alerts on move when what they tell of happens."""

from __future__ import annotations

import re

import pytest
from support import until, within_bound
from temporalio.client import WorkflowFailureError
from temporalio.worker import Worker

from errand import Forgotten, glance
from server import Server


async def value(server: Server, name: str, **labels: str) -> float:
    """The sum of a metric over all series that have these labels; 0 if there is none."""
    total = 0.0
    for line in (await server.metrics()).splitlines():
        found = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line)
        if found is None or found[1] != name:
            continue
        has = dict(re.findall(r'(\w+)="([^"]*)"', found[2]))
        if all(has.get(label) == wanted for label, wanted in labels.items()):
            total += float(found[3])
    return total


async def test_a_task_that_nobody_takes_in_time_is_counted(server: Server) -> None:
    client = await server.start()
    labels = {"namespace": "default", "taskqueue": "nobody", "task_type": "Activity", "partition": "0"}
    async with Worker(client, task_queue="desk", workflows=[Forgotten]):
        assert await value(server, "schedule_to_start_timeout", **labels) == 0
        with pytest.raises(WorkflowFailureError):
            await within_bound(
                client.execute_workflow(Forgotten.run, args=["nobody", 200], id="forgotten", task_queue="desk")
            )
    assert await value(server, "schedule_to_start_timeout", **labels) == 1


async def test_the_way_of_a_task_to_its_worker_is_measured(server: Server) -> None:
    client = await server.start()
    labels = {"taskqueue": "desk", "task_type": "Workflow", "forwarded": "false", "task_priority": "3"}
    # It waits before there is a worker.
    handle = await client.start_workflow(Forgotten.run, args=["desk", 600_000], id="waits", task_queue="desk")
    async with Worker(
        client,
        task_queue="desk",
        workflows=[Forgotten],
        activities=[glance],
        disable_eager_activity_execution=True,
    ):
        await within_bound(handle.result())
    assert await value(server, "task_dispatch_latency_count", source="DbBacklog", **labels) >= 1
    total = await value(server, "task_dispatch_latency_count", taskqueue="desk", task_type="Activity")
    assert total == 1


async def test_polls_that_are_turned_away_are_counted_by_cause(server: Server) -> None:
    server.write("[engine]\npolls_per_namespace_max = 1\n")
    client = await server.start()
    async with Worker(client, task_queue="desk", workflows=[Forgotten], activities=[glance]):

        async def is_counted() -> bool:
            return await value(
                server,
                "service_errors_resource_exhausted",
                operation="PollActivityTaskQueue",
                resource_exhausted_cause="ConcurrentLimit",
                resource_exhausted_scope="Namespace",
            ) > 0

        await until(is_counted)
