"""Activities without a workflow: started by a client, done by any worker of their queue."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.client import (
    ActivityExecutionStatus,
    ActivityFailureError,
    PendingActivityState,
)
from temporalio.common import (
    ActivityIDConflictPolicy,
    ActivityIDReusePolicy,
    Priority,
    RetryPolicy,
)
from temporalio.exceptions import (
    ActivityAlreadyStartedError,
    ApplicationError,
    CancelledError,
    TerminatedError,
    TimeoutError,
)

from app.activities import (
    Charge,
    Seat,
    decline,
    greet,
    outlive_every_timeout,
    read_priority,
    resume_from_heartbeat,
    succeed_on_attempt,
)
from app.turns import Turns
from queues import ACTIVITY, until_waiting
from support import Stage, until, within_bound
from turn_taking import ONE_BY_ONE, assert_shares

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
ONCE = RetryPolicy(maximum_attempts=1)
QUICKLY = RetryPolicy(initial_interval=timedelta(milliseconds=10))


async def start(stage: Stage, what, *args, **options):
    options.setdefault("id", f"{stage.name}-activity")
    options.setdefault("start_to_close_timeout", MINUTE)
    return await stage.client.start_activity(
        what, args=args, task_queue=stage.name, **options
    )


async def until_state(handle, state: PendingActivityState) -> None:
    async def is_there() -> bool:
        return (await handle.describe()).run_state == state

    await until(is_there)


async def failure_of(handle) -> BaseException:
    with pytest.raises(ActivityFailureError) as failed:
        await within_bound(handle.result())
    return failed.value.cause


async def test_its_result_comes_to_its_client(stage: Stage):
    async with stage.worker(activities=[greet]):
        handle = await start(stage, greet, "Ada")
        assert await within_bound(handle.result()) == "Hello, Ada!"
    told = await handle.describe()
    assert told.status == ActivityExecutionStatus.COMPLETED
    assert told.attempt == 1
    assert told.activity_run_id == handle.run_id


async def test_it_knows_that_it_has_no_workflow(stage: Stage):
    @activity.defn
    async def look() -> list:
        info = activity.info()
        return [
            info.workflow_id,
            info.workflow_type,
            info.activity_id,
            info.activity_run_id,
        ]

    async with stage.worker(activities=[look]):
        handle = await start(stage, look)
        seen = await within_bound(handle.result())
    assert seen == [None, None, handle.id, handle.run_id]


async def test_a_failing_one_is_tried_again(stage: Stage):
    async with stage.worker(activities=[succeed_on_attempt]):
        handle = await start(stage, succeed_on_attempt, 3, retry_policy=QUICKLY)
        assert await within_bound(handle.result()) == 3


async def test_the_next_attempt_gets_the_heartbeat_of_the_last(stage: Stage):
    async with stage.worker(activities=[resume_from_heartbeat]):
        handle = await start(stage, resume_from_heartbeat, retry_policy=QUICKLY)
        assert await within_bound(handle.result()) == [2, 3]


async def test_its_failure_comes_to_its_client(stage: Stage):
    async with stage.worker(activities=[decline]):
        handle = await start(stage, decline, Charge(7, "Declined"), retry_policy=ONCE)
        cause = await failure_of(handle)
    assert isinstance(cause, ApplicationError)
    assert cause.type == "Declined"
    assert (await handle.describe()).status == ActivityExecutionStatus.FAILED


@pytest.mark.parametrize("which", ["start_to_close", "heartbeat"])
async def test_an_attempt_runs_out_of_time(stage: Stage, which: str):
    async with stage.worker(activities=[outlive_every_timeout]):
        handle = await start(
            stage,
            outlive_every_timeout,
            retry_policy=ONCE,
            **{f"{which}_timeout": SECOND},
        )
        cause = await failure_of(handle)
    assert isinstance(cause, TimeoutError)
    assert (await handle.describe()).status == ActivityExecutionStatus.TIMED_OUT


@pytest.mark.parametrize("which", ["schedule_to_start", "schedule_to_close"])
async def test_nobody_takes_it_in_time(stage: Stage, which: str):
    handle = await start(stage, greet, "Ada", **{f"{which}_timeout": SECOND})
    assert isinstance(await failure_of(handle), TimeoutError)


async def test_a_cancel_reaches_the_worker_with_a_heartbeat(stage: Stage):
    @activity.defn
    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.05)

    async with stage.worker(activities=[beat]):
        handle = await start(stage, beat, heartbeat_timeout=MINUTE)
        await until_state(handle, PendingActivityState.STARTED)
        await handle.cancel(reason="enough")
        assert isinstance(await failure_of(handle), CancelledError)
    told = await handle.describe()
    assert told.status == ActivityExecutionStatus.CANCELED
    assert told.canceled_reason == "enough"


async def test_a_termination_waits_for_nobody(stage: Stage):
    async with stage.worker(activities=[outlive_every_timeout]):
        handle = await start(stage, outlive_every_timeout)
        await until_state(handle, PendingActivityState.STARTED)
        await handle.terminate(reason="enough")
        cause = await failure_of(handle)
    assert isinstance(cause, TerminatedError)
    assert str(cause) == "enough"


async def test_an_id_is_taken_until_its_activity_ends(stage: Stage):
    first = await start(stage, greet, "Ada")
    with pytest.raises(ActivityAlreadyStartedError) as refused:
        await start(stage, greet, "Bob")
    assert refused.value.run_id == first.run_id
    same = await start(
        stage, greet, "Bob", id_conflict_policy=ActivityIDConflictPolicy.USE_EXISTING
    )
    assert same.run_id == first.run_id
    async with stage.worker(activities=[greet]):
        await within_bound(first.result())
        with pytest.raises(ActivityAlreadyStartedError):
            await start(
                stage,
                greet,
                "Bob",
                id_reuse_policy=ActivityIDReusePolicy.REJECT_DUPLICATE,
            )
        second = await start(stage, greet, "Bob")
        assert second.run_id != first.run_id
        assert await within_bound(second.result()) == "Hello, Bob!"
    assert await within_bound(first.result()) == "Hello, Ada!"


async def test_somebody_else_completes_it_by_its_id(stage: Stage):
    @activity.defn
    async def later() -> str:
        activity.raise_complete_async()

    async with stage.worker(activities=[later]):
        handle = await start(stage, later)
        await until_state(handle, PendingActivityState.STARTED)
        outside = stage.client.get_async_activity_handle(
            activity_id=handle.id, run_id=handle.run_id
        )
        await outside.heartbeat("half")
        await outside.complete("from outside")
        assert await within_bound(handle.result()) == "from outside"


async def test_a_delayed_one_starts_later(stage: Stage):
    async with stage.worker(activities=[greet]):
        handle = await start(stage, greet, "Ada", start_delay=SECOND)
        assert await within_bound(handle.result()) == "Hello, Ada!"
    told = await handle.describe()
    assert told.last_started_time - told.schedule_time >= SECOND


async def test_a_paused_one_waits(stage: Stage):
    handle = await start(stage, greet, "Ada")
    await handle.pause(reason="bad deploy")
    async with stage.worker(activities=[greet]):
        other = await start(stage, greet, "Bob", id=f"{stage.name}-other")
        await within_bound(other.result())
        assert (await handle.describe()).run_state == PendingActivityState.PAUSED
        await handle.unpause()
        assert await within_bound(handle.result()) == "Hello, Ada!"


async def test_it_runs_with_the_priority_that_it_was_started_with(stage: Stage):
    priority = Priority(priority_key=2, fairness_key="acme", fairness_weight=3.0)
    async with stage.worker(activities=[read_priority]):
        handle = await start(stage, read_priority, priority=priority)
        seat = await within_bound(handle.result())
    assert seat == Seat(2, "acme", 3.0)


async def test_tenants_share_the_queue_by_their_weights(stage: Stage):
    turns = Turns()
    handles = []
    for tenant, weight in (("acme", 3.0), ("bolt", 1.0)):
        for number in range(12):
            handles.append(
                await start(
                    stage,
                    "take_turn",
                    f"{tenant} {number}",
                    id=f"{stage.name}-{tenant}-{number}",
                    priority=Priority(fairness_key=tenant, fairness_weight=weight),
                )
            )
    await until_waiting(stage, ACTIVITY, len(handles))
    async with stage.worker(activities=[turns.take_turn], **ONE_BY_ONE):
        await within_bound(asyncio.gather(*(handle.result() for handle in handles)))
    assert_shares(turns.taken[:16], {"acme": 3, "bolt": 1})
