"""What the tests use to stage a workflow and to look at what became of it."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any, Awaitable, Callable, Sequence

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import UpdateRef
from temporalio.api.workflowservice.v1 import PollWorkflowExecutionUpdateRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer, Worker

WAIT_SECONDS_MAX = 30.0


class Stage:
    """One test's task queue and workflow ids."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self.workflow_id = f"{name}-workflow"

    def worker(
        self, *workflows: type, activities: Sequence[Callable] = (), **options
    ) -> Worker:
        return Worker(
            self.client,
            task_queue=self.name,
            workflows=workflows,
            activities=activities,
            max_heartbeat_throttle_interval=timedelta(milliseconds=100),
            **options,
        )

    async def start(self, workflow: Callable, *args: Any, **options) -> WorkflowHandle:
        options.setdefault("id", self.workflow_id)
        return await self.client.start_workflow(
            workflow, args=args, task_queue=self.name, **options
        )

    async def execute(self, workflow: Callable, *args: Any, **options) -> Any:
        return await (await self.start(workflow, *args, **options)).result()


async def events(handle: WorkflowHandle) -> list[HistoryEvent]:
    return list((await handle.fetch_history()).events)


def names(history: Sequence[HistoryEvent]) -> list[str]:
    return [
        EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
        for event in history
    ]


async def event_names(handle: WorkflowHandle) -> list[str]:
    return names(await events(handle))


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Waits for a condition that only the server can tell, with a generous bound."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not await condition():
        assert time.monotonic() < deadline, "the awaited condition never came"
        await asyncio.sleep(0.05)


async def until_event(handle: WorkflowHandle, name: str) -> None:
    async def has_event() -> bool:
        return name in await event_names(handle)

    await until(has_event)


async def within_bound(awaitable: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(awaitable, WAIT_SECONDS_MAX)


async def until_admitted(handle: WorkflowHandle, update_id: str) -> None:
    """Waits until the server knows an update that no worker has seen yet."""
    execution = WorkflowExecution(workflow_id=handle.id)
    request = PollWorkflowExecutionUpdateRequest(
        namespace=handle._client.namespace,
        update_ref=UpdateRef(workflow_execution=execution, update_id=update_id),
    )

    async def is_admitted() -> bool:
        try:
            service = handle._client.workflow_service
            await service.poll_workflow_execution_update(request)
        except RPCError as error:
            assert error.status == RPCStatusCode.NOT_FOUND, error
            return False
        return True

    await until(is_admitted)


async def replays(handle: WorkflowHandle, *workflows: type) -> None:
    await Replayer(workflows=workflows).replay_workflow(await handle.fetch_history())
