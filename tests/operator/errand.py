"""The workflow that the tests have done, and the work in it."""

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
