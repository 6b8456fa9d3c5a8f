"""Activities that take too long, that heartbeat, and that are cancelled while they run."""

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError, TimeoutError, TimeoutType

from app.activities import Watched, outlive_every_timeout, resume_from_heartbeat
from app.activity_workflows import CancelActivity, ResumeFromHeartbeat, TimeOut
from support import Stage, event_names, within_bound


async def test_heartbeat_details_survive_a_retry(stage: Stage):
    async with stage.worker(ResumeFromHeartbeat, activities=[resume_from_heartbeat]):
        assert await stage.execute(ResumeFromHeartbeat.run) == [2, 3]


async def time_out(stage: Stage, timeout: str) -> TimeoutType:
    async with stage.worker(TimeOut, activities=[outlive_every_timeout]):
        handle = await stage.start(TimeOut.run, timeout)
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert "ACTIVITY_TASK_TIMED_OUT" in await event_names(handle)
    cause = failure.value.cause.cause
    assert isinstance(cause, TimeoutError)
    return cause.type


async def test_a_silent_activity_meets_its_heartbeat_timeout(stage: Stage):
    assert await time_out(stage, "heartbeat") == TimeoutType.HEARTBEAT


async def test_a_slow_activity_meets_its_start_to_close_timeout(stage: Stage):
    assert await time_out(stage, "start_to_close") == TimeoutType.START_TO_CLOSE


async def test_an_activity_nobody_polls_for_meets_its_schedule_to_start_timeout(
    stage: Stage,
):
    assert await time_out(stage, "schedule_to_start") == TimeoutType.SCHEDULE_TO_START


async def test_cancelling_a_workflow_reaches_its_heartbeating_activity(stage: Stage):
    watched = Watched()
    async with stage.worker(
        CancelActivity, activities=[watched.heartbeat_until_cancelled]
    ):
        handle = await stage.start(CancelActivity.run)
        await within_bound(watched.started.wait())
        await handle.cancel()
        await within_bound(watched.cancelled.wait())
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, CancelledError)
    history = await event_names(handle)
    assert history.index("ACTIVITY_TASK_CANCEL_REQUESTED") < history.index(
        "ACTIVITY_TASK_CANCELED"
    )
    assert history[-1] == "WORKFLOW_EXECUTION_CANCELED"
