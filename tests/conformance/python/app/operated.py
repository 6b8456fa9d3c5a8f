"""Activities and workflows that an operator meddles with while they go on."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ApplicationError

HOUR = timedelta(hours=1)


class Crew:
    """Activities that tell the test, which runs in the worker's process, what they go through."""

    def __init__(self) -> None:
        self.attempts: list[int] = []
        self.may_succeed = asyncio.Event()
        self.started = asyncio.Event()
        self.heard: list[str] = []  # why attempts were interrupted
        self.details: list[tuple] = []  # heartbeat details each attempt began with

    @activity.defn
    async def stumble(self) -> int:
        """Fails until it may succeed, and returns its attempt's number."""
        info = activity.info()
        self.attempts.append(info.attempt)
        self.details.append(tuple(info.heartbeat_details))
        activity.heartbeat(f"attempt {info.attempt}")
        self.started.set()
        if not self.may_succeed.is_set():
            raise ApplicationError("not yet", type="NotYet")
        return info.attempt

    @activity.defn
    async def toil(self) -> int:
        """Fails once, and then says nothing until it may succeed."""
        attempt = activity.info().attempt
        self.attempts.append(attempt)
        if attempt == 1:
            raise ApplicationError("not yet", type="NotYet")
        self.started.set()
        await self.may_succeed.wait()
        return attempt

    @activity.defn
    async def beat(self) -> int:
        """Heartbeats until it may succeed or is interrupted."""
        self.attempts.append(activity.info().attempt)
        self.started.set()
        try:
            while not self.may_succeed.is_set():
                activity.heartbeat("still here")
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            assert details is not None
            if details.paused:
                self.heard.append("paused")
            if details.reset:
                self.heard.append("reset")
            raise
        return activity.info().attempt


@workflow.defn
class Errand:
    """One activity with id "errand", on a queue and with a back-off of the test's choice."""

    @workflow.run
    async def run(self, name: str, task_queue: str, interval_seconds: float) -> int:
        return await workflow.execute_activity(
            name,
            activity_id="errand",
            task_queue=task_queue,
            start_to_close_timeout=HOUR,
            heartbeat_timeout=timedelta(minutes=1),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=interval_seconds),
                backoff_coefficient=1.0,
            ),
            result_type=int,
        )


@workflow.defn
class Round:
    """Visits at the same time, each an activity whose id is its name."""

    @workflow.run
    async def run(self, visits: list[str], task_queue: str) -> None:
        await asyncio.gather(
            *(
                workflow.execute_activity(
                    "take_turn",
                    visit,
                    activity_id=visit,
                    task_queue=task_queue,
                    start_to_close_timeout=HOUR,
                    priority=Priority(priority_key=3),
                )
                for visit in visits
            )
        )
