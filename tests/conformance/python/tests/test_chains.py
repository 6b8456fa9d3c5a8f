"""Workflows of several runs: continued as new, retried by their policy, on a schedule."""

from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import ContinueAsNewInitiator, RetryState
from temporalio.api.history.v1 import (
    HistoryEvent,
    WorkflowExecutionStartedEventAttributes,
)
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ApplicationError, TerminatedError

from app.activities import Seat
from app.chain_workflows import KeepDiary, Relay, RunRelay, SucceedOnRun
from app.message_workflows import Refuse
from support import Stage, event_names, events, until

RETRY = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_RETRY
CRON = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE


def quick_retry(**options) -> RetryPolicy:
    return RetryPolicy(
        initial_interval=timedelta(milliseconds=50), backoff_coefficient=1.0, **options
    )


def run_of(stage: Stage, run_id: str) -> WorkflowHandle:
    return stage.client.get_workflow_handle(stage.workflow_id, run_id=run_id)


async def started(run: WorkflowHandle) -> WorkflowExecutionStartedEventAttributes:
    return (await events(run))[0].workflow_execution_started_event_attributes


async def last_event(run: WorkflowHandle) -> HistoryEvent:
    return (await events(run))[-1]


async def runs_of_chain(stage: Stage, first_run_id: str) -> list[WorkflowHandle]:
    """Every run from the first to the last, as each one's last event names the next."""
    runs = [run_of(stage, first_run_id)]
    while next_run_id := next_run(await last_event(runs[-1])):
        runs.append(run_of(stage, next_run_id))
    return runs


def next_run(event: HistoryEvent) -> str:
    attributes = getattr(event, event.WhichOneof("attributes"))
    return getattr(attributes, "new_execution_run_id", "")


async def test_three_runs_that_continue_as_new_give_one_result(stage: Stage):
    async with stage.worker(RunRelay):
        handle = await stage.start(RunRelay.run, Relay(3))
        relay = await handle.result()
    first, second, third = relay.run_ids
    assert first == handle.first_execution_run_id
    assert len({first, second, third}) == 3

    for run_id, next_run_id in [(first, second), (second, third)]:
        run = run_of(stage, run_id)
        last = await last_event(run)
        continued = last.workflow_execution_continued_as_new_event_attributes
        assert continued.new_execution_run_id == next_run_id
        status = (await run.describe()).status
        assert status == WorkflowExecutionStatus.CONTINUED_AS_NEW
        next_started = await started(run_of(stage, next_run_id))
        assert next_started.continued_execution_run_id == run_id
        assert next_started.original_execution_run_id == next_run_id
        assert next_started.first_execution_run_id == first
    assert (await last_event(run_of(stage, third))).HasField(
        "workflow_execution_completed_event_attributes"
    )


async def test_a_new_run_keeps_memo_type_queue_and_timeouts(stage: Stage):
    async with stage.worker(RunRelay):
        handle = await stage.start(
            RunRelay.run,
            Relay(2),
            memo={"colour": "blue"},
            run_timeout=timedelta(minutes=5),
            task_timeout=timedelta(seconds=7),
        )
        relay = await handle.result()
    last_run = run_of(stage, relay.run_ids[-1])
    description = await last_run.describe()
    assert description.run_id != handle.first_execution_run_id
    assert await description.memo() == {"colour": "blue"}
    assert description.workflow_type == "RunRelay"
    assert description.task_queue == stage.name
    kept = await started(last_run)
    assert kept.workflow_run_timeout.ToTimedelta() == timedelta(minutes=5)
    assert kept.workflow_task_timeout.ToTimedelta() == timedelta(seconds=7)


async def test_a_new_run_keeps_the_priority(stage: Stage):
    async with stage.worker(RunRelay):
        relay = await stage.execute(
            RunRelay.run,
            Relay(2),
            priority=Priority(priority_key=2, fairness_key="t", fairness_weight=4.0),
        )
    assert relay.seats == [Seat(2, "t", 4.0)] * 2


async def test_a_start_delay_holds_up_the_first_run_only(stage: Stage):
    delay = timedelta(seconds=2)
    async with stage.worker(RunRelay):
        handle = await stage.start(RunRelay.run, Relay(2), start_delay=delay)
        assert await event_names(handle) == ["WORKFLOW_EXECUTION_STARTED"]
        relay = await handle.result()
    first, second = [await started(run_of(stage, id)) for id in relay.run_ids]
    assert first.first_workflow_task_backoff.ToTimedelta() == delay
    assert second.first_workflow_task_backoff.ToTimedelta() < delay


async def test_a_failing_workflow_is_retried_until_it_succeeds(stage: Stage):
    async with stage.worker(SucceedOnRun):
        handle = await stage.start(SucceedOnRun.run, 3, retry_policy=quick_retry())
        assert await handle.result() == 3
    runs = await runs_of_chain(stage, handle.first_execution_run_id)
    assert [(await started(run)).attempt for run in runs] == [1, 2, 3]
    assert [(await run.describe()).status for run in runs] == [
        WorkflowExecutionStatus.FAILED,
        WorkflowExecutionStatus.FAILED,
        WorkflowExecutionStatus.COMPLETED,
    ]
    last = await started(runs[-1])
    assert last.initiator == RETRY
    assert last.continued_failure.message == "run 2 is too early"
    assert last.first_execution_run_id == handle.first_execution_run_id


async def test_a_workflow_that_exhausts_its_attempts_fails_with_its_last_error(
    stage: Stage,
):
    async with stage.worker(SucceedOnRun):
        handle = await stage.start(
            SucceedOnRun.run, 9, retry_policy=quick_retry(maximum_attempts=2)
        )
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.message == "run 2 is too early"
    runs = await runs_of_chain(stage, handle.first_execution_run_id)
    assert len(runs) == 2
    failed = (await last_event(runs[-1])).workflow_execution_failed_event_attributes
    assert failed.retry_state == RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED


async def fails_at_once(stage: Stage, handle: WorkflowHandle) -> None:
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    (run,) = await runs_of_chain(stage, handle.first_execution_run_id)
    failed = (await last_event(run)).workflow_execution_failed_event_attributes
    assert failed.retry_state == RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE


async def test_a_non_retryable_failure_is_not_retried(stage: Stage):
    async with stage.worker(Refuse):
        handle = await stage.start(Refuse.run, "A-17", retry_policy=quick_retry())
        await fails_at_once(stage, handle)


async def test_a_failure_whose_type_the_policy_excludes_is_not_retried(stage: Stage):
    policy = quick_retry(non_retryable_error_types=["TooEarly"])
    async with stage.worker(SucceedOnRun):
        handle = await stage.start(SucceedOnRun.run, 2, retry_policy=policy)
        await fails_at_once(stage, handle)


async def test_a_schedule_hands_the_last_result_from_run_to_run(stage: Stage):
    async with stage.worker(KeepDiary):
        handle = await stage.start(KeepDiary.run, cron_schedule="@every 1s")
        first_run_id = handle.first_execution_run_id

        async def has_run_four_times() -> bool:
            return len(await runs_of_chain(stage, first_run_id)) > 4

        await until(has_run_four_times)
        await stage.client.get_workflow_handle(stage.workflow_id).terminate("enough")
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, TerminatedError)

    runs = await runs_of_chain(stage, first_run_id)
    closing_events = [(await event_names(run))[-1] for run in runs]
    assert closing_events[:4] == [
        "WORKFLOW_EXECUTION_COMPLETED",
        "WORKFLOW_EXECUTION_FAILED",
        "WORKFLOW_EXECUTION_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]
    assert closing_events[-1] == "WORKFLOW_EXECUTION_TERMINATED"
    fifth = await started(runs[4])
    (diary,) = await stage.client.data_converter.decode(
        fifth.last_completion_result.payloads
    )
    late_page = "a late page, since the pencil broke"
    assert diary == ["a page", late_page, "a page"]
    assert fifth.cron_schedule == "@every 1s"
    assert fifth.initiator == CRON
    assert fifth.attempt == 1
    assert fifth.first_execution_run_id == first_run_id
