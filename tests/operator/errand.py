"""The workflows that the tests have done, and the work in them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import activity, workflow


@workflow.defn
class Errand:
    @workflow.run
    async def run(self, what: str) -> str:
        return await workflow.execute_activity(
            "work", what, activity_id="work", start_to_close_timeout=timedelta(minutes=5)
        )


class Bench:
    """An activity that ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = asyncio.Event()

    @activity.defn
    async def work(self, what: str) -> str:
        self.begun.append(what)
        await self.may_end.wait()
        return what


@workflow.defn
class Forgotten:
    """Has work for a queue that may have no worker, and waits only so long for one."""

    @workflow.run
    async def run(self, queue: str, patience_ms: int) -> None:
        await workflow.execute_activity(
            "glance",
            task_queue=queue,
            schedule_to_start_timeout=timedelta(milliseconds=patience_ms),
            start_to_close_timeout=timedelta(minutes=1),
        )


@activity.defn
async def glance() -> None:
    """Takes no time."""
