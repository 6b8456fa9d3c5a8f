"""Workflows that are mostly one activity with interesting options."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy

with workflow.unsafe.imports_passed_through():
    from app.activities import (
        Charge,
        Seat,
        Watched,
        decline,
        greet,
        outlive_every_timeout,
        read_priority,
        resume_from_heartbeat,
        succeed_on_attempt,
    )

MINUTE = timedelta(minutes=1)


def quick_retry(**options) -> RetryPolicy:
    return RetryPolicy(
        initial_interval=timedelta(milliseconds=50), backoff_coefficient=1.0, **options
    )


@workflow.defn
class Hello:
    @workflow.run
    async def run(self, name: str) -> str:
        return await workflow.execute_activity(
            greet, name, start_to_close_timeout=MINUTE
        )


@workflow.defn
class HelloLocally:
    @workflow.run
    async def run(self, name: str) -> str:
        return await workflow.execute_local_activity(
            greet, name, start_to_close_timeout=MINUTE
        )


@workflow.defn
class RetryUntil:
    @workflow.run
    async def run(self, wanted: int) -> int:
        return await workflow.execute_activity(
            succeed_on_attempt,
            wanted,
            start_to_close_timeout=MINUTE,
            retry_policy=quick_retry(),
        )


@workflow.defn
class Pay:
    @workflow.run
    async def run(self, charge: Charge) -> None:
        await workflow.execute_activity(
            decline,
            charge,
            start_to_close_timeout=MINUTE,
            retry_policy=quick_retry(
                maximum_attempts=3, non_retryable_error_types=["StolenCard"]
            ),
        )


@workflow.defn
class ResumeFromHeartbeat:
    @workflow.run
    async def run(self) -> list[int]:
        return await workflow.execute_activity(
            resume_from_heartbeat,
            start_to_close_timeout=MINUTE,
            heartbeat_timeout=MINUTE,
            retry_policy=quick_retry(maximum_attempts=2),
        )


@workflow.defn
class TimeOut:
    """Waits for an activity that ends only by the timeout named in the argument."""

    @workflow.run
    async def run(self, timeout: str) -> None:
        second = timedelta(seconds=1)
        options = {
            "heartbeat": {
                "start_to_close_timeout": MINUTE,
                "heartbeat_timeout": second,
            },
            "start_to_close": {"start_to_close_timeout": second},
            "schedule_to_close": {"schedule_to_close_timeout": second},
            "schedule_to_start": {
                "start_to_close_timeout": MINUTE,
                "schedule_to_start_timeout": second,
                "task_queue": f"nobody-polls-{workflow.info().workflow_id}",
            },
        }[timeout]
        await workflow.execute_activity(
            outlive_every_timeout,
            retry_policy=RetryPolicy(maximum_attempts=1),
            **options,
        )


@workflow.defn
class CancelActivity:
    """Passes its own cancellation on to the activity and waits for its answer."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity_method(
            Watched.heartbeat_until_cancelled,
            start_to_close_timeout=MINUTE,
            heartbeat_timeout=timedelta(seconds=30),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


@workflow.defn
class CompleteElsewhere:
    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_activity_method(
            Watched.leave_to_someone_else,
            start_to_close_timeout=MINUTE,
            retry_policy=RetryPolicy(maximum_attempts=1),
        )


@workflow.defn
class ReadPriorities:
    """Returns what activities see that set no field of their priority, all of them, or one."""

    @workflow.run
    async def run(self) -> list[Seat]:
        priorities = [
            Priority(),
            Priority(priority_key=1, fairness_key="bolt", fairness_weight=2.5),
            Priority(priority_key=1),
            Priority(fairness_key="bolt"),
            Priority(fairness_weight=2.5),
        ]
        return [
            await workflow.execute_activity(
                read_priority, start_to_close_timeout=MINUTE, priority=priority
            )
            for priority in priorities
        ]


@workflow.defn
class ManyActivities:
    """Runs rounds of parallel activities, to grow a long history."""

    @workflow.run
    async def run(self, rounds: int, width: int) -> int:
        done = 0
        for _ in range(rounds):
            calls = (
                workflow.execute_activity(
                    greet, f"guest {guest}", start_to_close_timeout=MINUTE
                )
                for guest in range(width)
            )
            done += len(await asyncio.gather(*calls))
        return done
