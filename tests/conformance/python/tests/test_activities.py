"""Activities: results, retries, failures and the priority they run with."""

import asyncio

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.common import Priority
from temporalio.exceptions import ActivityError, ApplicationError, RetryState
from temporalio.worker import PollerBehaviorAutoscaling

from app.activities import (
    Charge,
    Seat,
    Watched,
    decline,
    greet,
    read_priority,
    succeed_on_attempt,
)
from app.activity_workflows import (
    CompleteElsewhere,
    Hello,
    HelloLocally,
    Pay,
    ReadPriorities,
    RetryUntil,
)
from support import Stage, event_names, events, names, within_bound

HELLO_HISTORY = [
    "WORKFLOW_EXECUTION_STARTED",
    "WORKFLOW_TASK_SCHEDULED",
    "WORKFLOW_TASK_STARTED",
    "WORKFLOW_TASK_COMPLETED",
    "ACTIVITY_TASK_SCHEDULED",
    "ACTIVITY_TASK_STARTED",
    "ACTIVITY_TASK_COMPLETED",
    "WORKFLOW_TASK_SCHEDULED",
    "WORKFLOW_TASK_STARTED",
    "WORKFLOW_TASK_COMPLETED",
    "WORKFLOW_EXECUTION_COMPLETED",
]


async def test_hello_with_an_activity_leaves_exactly_the_expected_history(stage: Stage):
    async with stage.worker(Hello, activities=[greet]):
        handle = await stage.start(Hello.run, "Ada")
        assert await handle.result() == "Hello, Ada!"
    assert await event_names(handle) == HELLO_HISTORY


# The server tells such a worker with each task whether to poll more or less.
async def test_a_worker_that_scales_its_polls_finishes_everything(stage: Stage):
    scaling = PollerBehaviorAutoscaling(minimum=1, maximum=20, initial=2)
    async with stage.worker(
        Hello,
        activities=[greet],
        workflow_task_poller_behavior=scaling,
        activity_task_poller_behavior=scaling,
    ):
        guests = [f"guest {number}" for number in range(40)]
        greetings = [
            stage.execute(Hello.run, guest, id=f"{stage.workflow_id}-{guest}")
            for guest in guests
        ]
        answers = await asyncio.gather(*greetings)
    assert answers == [f"Hello, {guest}!" for guest in guests]


async def test_a_failing_activity_is_retried_until_it_succeeds(stage: Stage):
    async with stage.worker(RetryUntil, activities=[succeed_on_attempt]):
        handle = await stage.start(RetryUntil.run, 3)
        assert await handle.result() == 3

    # Attempts that are retried leave no events of their own: only the last one is written.
    history = await events(handle)
    assert names(history) == HELLO_HISTORY
    started = history[5].activity_task_started_event_attributes
    assert started.attempt == 3
    assert started.last_failure.message == "attempt 2 is too early"
    assert started.last_failure.application_failure_info.type == "TooEarly"


async def pay(stage: Stage, charge: Charge) -> ActivityError:
    async with stage.worker(Pay, activities=[decline]):
        with pytest.raises(WorkflowFailureError) as failure:
            await stage.execute(Pay.run, charge)
    assert isinstance(failure.value.cause, ActivityError)
    assert isinstance(failure.value.cause.cause, ApplicationError)
    return failure.value.cause


async def test_an_activity_that_exhausts_its_attempts_fails_with_its_last_error(
    stage: Stage,
):
    error = await pay(stage, Charge(amount=40, error_type="Declined"))
    assert error.activity_type == "decline"
    assert error.retry_state == RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert error.cause.type == "Declined"
    assert error.cause.message == "card declined on attempt 3"
    assert list(error.cause.details) == [{"amount": 40}]


async def test_an_error_type_listed_as_non_retryable_is_not_retried(stage: Stage):
    error = await pay(stage, Charge(amount=40, error_type="StolenCard"))
    assert error.retry_state == RetryState.NON_RETRYABLE_FAILURE
    assert error.cause.message == "card declined on attempt 1"


async def test_an_error_that_says_it_is_non_retryable_is_not_retried(stage: Stage):
    error = await pay(
        stage, Charge(amount=40, error_type="Declined", non_retryable=True)
    )
    assert error.retry_state == RetryState.NON_RETRYABLE_FAILURE
    assert error.cause.non_retryable
    assert error.cause.message == "card declined on attempt 1"


async def test_an_activity_can_be_completed_by_its_task_token(stage: Stage):
    watched = Watched()
    async with stage.worker(
        CompleteElsewhere, activities=[watched.leave_to_someone_else]
    ):
        handle = await stage.start(CompleteElsewhere.run)
        await within_bound(watched.started.wait())
        activity = stage.client.get_async_activity_handle(task_token=watched.task_token)
        await activity.heartbeat("nearly there")
        await activity.complete("done by token")
        assert await handle.result() == "done by token"


async def test_an_activity_can_be_completed_by_its_id(stage: Stage):
    watched = Watched()
    async with stage.worker(
        CompleteElsewhere, activities=[watched.leave_to_someone_else]
    ):
        handle = await stage.start(CompleteElsewhere.run)
        await within_bound(watched.started.wait())
        activity = stage.client.get_async_activity_handle(
            workflow_id=handle.id,
            run_id=handle.first_execution_run_id,
            activity_id=watched.info.activity_id,
        )
        await activity.complete("done by id")
        assert await handle.result() == "done by id"


async def test_an_activity_can_be_failed_by_its_task_token(stage: Stage):
    watched = Watched()
    async with stage.worker(
        CompleteElsewhere, activities=[watched.leave_to_someone_else]
    ):
        handle = await stage.start(CompleteElsewhere.run)
        await within_bound(watched.started.wait())
        activity = stage.client.get_async_activity_handle(task_token=watched.task_token)
        await activity.fail(ApplicationError("nobody came", type="Absent"))
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert failure.value.cause.cause.type == "Absent"


async def test_a_local_activity_leaves_a_marker_instead_of_activity_events(
    stage: Stage,
):
    async with stage.worker(HelloLocally, activities=[greet]):
        handle = await stage.start(HelloLocally.run, "Ada")
        assert await handle.result() == "Hello, Ada!"
    assert await event_names(handle) == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "MARKER_RECORDED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]


async def test_an_activity_inherits_each_field_of_its_priority_that_it_does_not_set(
    stage: Stage,
):
    async with stage.worker(ReadPriorities, activities=[read_priority]):
        priorities = await stage.execute(
            ReadPriorities.run,
            priority=Priority(priority_key=2, fairness_key="acme", fairness_weight=4.0),
        )
    assert priorities == [
        Seat(2, "acme", 4.0),
        Seat(1, "bolt", 2.5),
        Seat(1, "acme", 4.0),
        Seat(2, "bolt", 4.0),
        Seat(2, "acme", 2.5),
    ]
