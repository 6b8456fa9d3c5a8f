"""Workflows and activities that tell in which order they got their turn."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import Priority

MINUTE = timedelta(minutes=1)


class Turns:
    """Notes whose turn it was, for the test, which runs in the worker's process."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    @activity.defn
    async def take_turn(self, name: str) -> None:
        self.taken.append(name)


@workflow.defn
class VisitOnce:
    """Takes its turn in its first task: that is where a local activity runs."""

    @workflow.run
    async def run(self, name: str) -> None:
        await workflow.execute_local_activity_method(
            Turns.take_turn, name, start_to_close_timeout=MINUTE
        )


@dataclass
class Errand:
    name: str
    priority: Priority = field(default_factory=Priority)


@workflow.defn
class RunErrands:
    """Schedules all errands at once, as activities of another queue."""

    @workflow.run
    async def run(self, task_queue: str, errands: list[Errand]) -> None:
        under_way = [
            workflow.start_activity_method(
                Turns.take_turn,
                errand.name,
                task_queue=task_queue,
                start_to_close_timeout=MINUTE,
                priority=errand.priority,
            )
            for errand in errands
        ]
        await asyncio.gather(*under_way)


@workflow.defn
class SendVisitors:
    """Starts all errands at once, as children on another queue."""

    @workflow.run
    async def run(self, task_queue: str, errands: list[Errand]) -> None:
        under_way = [
            workflow.execute_child_workflow(
                VisitOnce.run,
                errand.name,
                id=f"{workflow.info().workflow_id} {errand.name}",
                task_queue=task_queue,
                priority=errand.priority,
            )
            for errand in errands
        ]
        await asyncio.gather(*under_way)
