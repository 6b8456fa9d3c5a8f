"""How workflows end: failed, cancelled, terminated or timed out; and timers on the way."""

from datetime import timedelta

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    TerminatedError,
    TimeoutError,
    TimeoutType,
)
from temporalio.service import RPCError, RPCStatusCode

from app.message_workflows import (
    BrokenGreeting,
    CleanUpWhenCancelled,
    FixedGreeting,
    Refuse,
    Sleep,
    SleepUntilWoken,
)
from support import Stage, event_names, events, until_event


async def test_a_timer_fires(stage: Stage):
    async with stage.worker(Sleep):
        handle = await stage.start(Sleep.run, 0.2)
        assert await handle.result() == "awake"
    assert await event_names(handle) == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "TIMER_STARTED",
        "TIMER_FIRED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]


async def test_a_timer_that_lost_the_race_is_cancelled(stage: Stage):
    async with stage.worker(SleepUntilWoken):
        handle = await stage.start(SleepUntilWoken.run)
        await until_event(handle, "TIMER_STARTED")
        await handle.signal(SleepUntilWoken.wake)
        assert await handle.result() == "woken"
    history = await event_names(handle)
    assert "TIMER_CANCELED" in history
    assert "TIMER_FIRED" not in history


async def test_a_failed_workflow_shows_the_client_its_type_message_and_details(
    stage: Stage,
):
    async with stage.worker(Refuse):
        handle = await stage.start(Refuse.run, "A-17")
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "OutOfStock"
    assert cause.message == "order A-17 is out of stock"
    assert list(cause.details) == [{"order": "A-17", "left": 0}]
    assert (await handle.describe()).status == WorkflowExecutionStatus.FAILED


async def test_a_workflow_outlives_a_broken_deployment(stage: Stage):
    async with stage.worker(BrokenGreeting):
        handle = await stage.start(BrokenGreeting.run, "Ada")
        await until_event(handle, "WORKFLOW_TASK_FAILED")
    assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
    async with stage.worker(FixedGreeting):
        assert await handle.result() == "Hello, Ada!"

    # However many times the broken task was tried, the history tells of one failure.
    history = await events(handle)
    failed = [
        event
        for event in history
        if event.HasField("workflow_task_failed_event_attributes")
    ]
    assert len(failed) == 1
    message = failed[0].workflow_task_failed_event_attributes.failure.message
    assert message == "nobody tested this version"


async def test_a_cancelled_workflow_ends_as_cancelled(stage: Stage):
    async with stage.worker(Sleep):
        handle = await stage.start(Sleep.run, 3600)
        await until_event(handle, "TIMER_STARTED")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, CancelledError)
    assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED
    history = await event_names(handle)
    assert "WORKFLOW_EXECUTION_CANCEL_REQUESTED" in history
    assert history[-1] == "WORKFLOW_EXECUTION_CANCELED"


async def test_a_workflow_may_answer_a_cancellation_with_a_result(stage: Stage):
    async with stage.worker(CleanUpWhenCancelled):
        handle = await stage.start(CleanUpWhenCancelled.run)
        await until_event(handle, "TIMER_STARTED")
        await handle.cancel()
        assert await handle.result() == "cleaned up"


async def test_a_terminated_workflow_ends_at_once_and_without_a_worker(stage: Stage):
    handle = await stage.start(Sleep.run, 3600)
    await handle.terminate("no longer needed", reason="spring cleaning")
    with pytest.raises(WorkflowFailureError) as failure:
        await handle.result()
    assert isinstance(failure.value.cause, TerminatedError)
    assert (await handle.describe()).status == WorkflowExecutionStatus.TERMINATED
    attributes = (await events(handle))[
        -1
    ].workflow_execution_terminated_event_attributes
    assert attributes.reason == "spring cleaning"


async def test_terminating_a_closed_workflow_is_refused_as_not_found(stage: Stage):
    handle = await stage.start(Sleep.run, 3600)
    await handle.terminate()
    with pytest.raises(RPCError) as refusal:
        await handle.terminate()
    assert refusal.value.status == RPCStatusCode.NOT_FOUND


async def test_cancelling_a_closed_workflow_is_accepted_and_changes_nothing(
    stage: Stage,
):
    handle = await stage.start(Sleep.run, 3600)
    await handle.terminate()
    before = await event_names(handle)
    await handle.cancel()
    assert await event_names(handle) == before


async def test_a_workflow_that_overruns_its_run_timeout_is_timed_out(stage: Stage):
    async with stage.worker(Sleep):
        handle = await stage.start(Sleep.run, 3600, run_timeout=timedelta(seconds=1))
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, TimeoutError)
    assert failure.value.cause.type == TimeoutType.START_TO_CLOSE
    assert (await handle.describe()).status == WorkflowExecutionStatus.TIMED_OUT
