"""Runs that are begun again from one of their workflow tasks."""

import uuid

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import (
    EventType,
    ResetReapplyExcludeType,
    UpdateAdmittedEventOrigin,
    WorkflowTaskFailedCause,
)
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer

from app.activities import greet
from app.message_workflows import Inbox
from app.reset_workflows import Foreman, GreetTwice, Ledger, Volumes
from support import Stage, event_names, events, names, until, until_event

EXCLUDE = ResetReapplyExcludeType
COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


def run_of(stage: Stage, run_id: str) -> WorkflowHandle:
    return stage.client.get_workflow_handle(stage.workflow_id, run_id=run_id)


async def reset(
    stage: Stage, event_id: int, run_id: str = "", request_id: str = "", **options
) -> WorkflowHandle:
    response = await stage.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=stage.client.namespace,
            workflow_execution=WorkflowExecution(
                workflow_id=stage.workflow_id, run_id=run_id
            ),
            workflow_task_finish_event_id=event_id,
            request_id=request_id or str(uuid.uuid4()),
            reason="try again",
            **options,
        )
    )
    return run_of(stage, response.run_id)


async def completed_tasks(run: WorkflowHandle) -> list[int]:
    return [e.event_id for e in await events(run) if e.event_type == COMPLETED]


def find(history: list[HistoryEvent], name: str) -> HistoryEvent:
    return history[names(history).index(name)]


async def replays(run: WorkflowHandle, *workflows: type) -> None:
    history = WorkflowHistory(run.id, await events(run))
    await Replayer(workflows=workflows).replay_workflow(history)


async def test_a_finished_workflow_is_done_once_more_from_its_first_task(stage: Stage):
    async with stage.worker(GreetTwice, activities=[greet]):
        base = await stage.start(GreetTwice.run, "Ada")
        before = await base.result()
        first = (await completed_tasks(base))[0]
        again = await reset(stage, first)
        after = await again.result()
    assert before[:2] == after[:2] == ["Hello, Ada!", "Hello, Ada again!"]
    shared, history = await events(base), await events(again)
    assert history[: first - 1] == shared[: first - 1]
    started = history[0].workflow_execution_started_event_attributes
    assert started.original_execution_run_id == base.first_execution_run_id
    failed = history[first - 1].workflow_task_failed_event_attributes
    assert failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
    assert failed.base_run_id == base.first_execution_run_id
    assert failed.new_run_id == again.run_id
    assert failed.failure.message == "try again"
    assert failed.failure.HasField("reset_workflow_failure_info")
    assert failed.identity == "history-service"
    assert names(history)[first] == "WORKFLOW_TASK_SCHEDULED"
    await replays(again, GreetTwice)


async def test_a_reset_in_the_middle_keeps_what_was_done_before(stage: Stage):
    async with stage.worker(GreetTwice, activities=[greet]):
        base = await stage.start(GreetTwice.run, "Ada")
        before = await base.result()
        tasks = await completed_tasks(base)
        again = await reset(stage, tasks[1])
        after = await again.result()
    assert before[:2] == after[:2]
    history = await event_names(again)
    assert history.count("ACTIVITY_TASK_COMPLETED") == 2
    assert history[: tasks[1] - 1] == (await event_names(base))[: tasks[1] - 1]
    await replays(again, GreetTwice)


async def test_the_current_run_ends_for_the_new_one(stage: Stage):
    async with stage.worker(Inbox):
        base = await stage.start(Inbox.run)
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        again = await reset(stage, 4)
        terminated = (await events(run_of(stage, base.first_execution_run_id)))[-1]
        attributes = terminated.workflow_execution_terminated_event_attributes
        assert attributes.identity == "history-resetter"
        assert attributes.reason == "try again"
        await again.signal(Inbox.close)
        assert await again.result() == []
    base_run = run_of(stage, base.first_execution_run_id)
    described = await base_run.describe()
    assert described.status == WorkflowExecutionStatus.TERMINATED
    extended = described.raw_description.workflow_extended_info
    assert extended.reset_run_id == again.run_id
    description = await again.describe()
    extended = description.raw_description.workflow_extended_info
    assert extended.HasField("last_reset_time")
    assert extended.original_start_time.ToDatetime() < description.start_time.replace(
        tzinfo=None
    )
    info = description.raw_description.workflow_execution_info
    assert info.first_run_id == base.first_execution_run_id


async def test_signals_since_are_given_to_the_new_run(stage: Stage):
    async with stage.worker(Inbox):
        base = await stage.start(Inbox.run)
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        for letter in ["one", "two", "three"]:
            await base.signal(Inbox.deliver, letter)
        assert await base.query(Inbox.count) == 3
        again = await reset(stage, 4)
        assert await again.query(Inbox.count) == 3
        await again.signal(Inbox.close)
        assert await again.result() == ["one", "two", "three"]
    history = await event_names(again)
    assert history[3:8] == [
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    await replays(again, Inbox)


async def test_excluded_signals_are_left_out(stage: Stage):
    async with stage.worker(Inbox):
        base = await stage.start(Inbox.run)
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        await base.signal(Inbox.deliver, "one")
        again = await reset(
            stage,
            4,
            reset_reapply_exclude_types=[
                EXCLUDE.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL
            ],
        )
        assert await again.query(Inbox.count) == 0
        await again.terminate()


async def test_accepted_updates_are_admitted_again(stage: Stage):
    async with stage.worker(Ledger):
        base = await stage.start(Ledger.run)
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        assert await base.execute_update(Ledger.add, 3, id="three") == 3
        await base.signal(Ledger.note, 4)
        assert await base.execute_update(Ledger.add, 5, id="five") == 12
        again = await reset(stage, 4)
        assert await again.get_update_handle("three").result() == 3
        assert await again.get_update_handle("five").result() == 12
        await again.signal(Ledger.close)
        assert sorted(await again.result()) == [3, 4, 5]
    history = await events(again)
    assert names(history)[3:8] == [
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_UPDATE_ADMITTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_UPDATE_ADMITTED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    admitted = history[4].workflow_execution_update_admitted_event_attributes
    assert admitted.request.meta.update_id == "three"
    assert (
        admitted.origin
        == UpdateAdmittedEventOrigin.UPDATE_ADMITTED_EVENT_ORIGIN_REAPPLY
    )
    accepted = find(history, "WORKFLOW_EXECUTION_UPDATE_ACCEPTED")
    attributes = accepted.workflow_execution_update_accepted_event_attributes
    assert not attributes.HasField("accepted_request")
    await replays(again, Ledger)


async def test_updates_wait_for_a_worker_to_come(stage: Stage):
    async with stage.worker(Ledger):
        base = await stage.start(Ledger.run)
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        assert await base.execute_update(Ledger.add, 3, id="three") == 3
    again = await reset(stage, 4)
    async with stage.worker(Ledger):
        assert await again.get_update_handle("three").result() == 3
        await again.terminate()


async def test_an_activity_under_way_is_done_again(stage: Stage):
    base = await stage.start(GreetTwice.run, "Ada")
    async with stage.worker(GreetTwice):
        await until_event(base, "ACTIVITY_TASK_SCHEDULED")
        await base.cancel()
        await until_event(base, "WORKFLOW_EXECUTION_CANCELED")
    tasks = await completed_tasks(base)
    again = await reset(stage, tasks[-1])
    described = await again.describe()
    assert len(described.raw_description.pending_activities) == 1
    async with stage.worker(GreetTwice, activities=[greet]):
        # The cancel request came before the place where it goes on.
        await until_event(again, "WORKFLOW_EXECUTION_CANCELED")


async def test_a_child_is_kept(stage: Stage):
    async with stage.worker(Foreman, Ledger):
        base = await stage.start(Foreman.run)
        await until_event(base, "CHILD_WORKFLOW_EXECUTION_STARTED")
        await base.signal(Foreman.note, 1)
        child = stage.client.get_workflow_handle(f"{stage.workflow_id}-child")

        async def has_gone_on() -> bool:
            return len(await completed_tasks(base)) == 3

        await until(has_gone_on)
        again = await reset(stage, (await completed_tasks(base))[-1])
        described = await child.describe()
        assert described.status == WorkflowExecutionStatus.RUNNING
        await child.signal(Ledger.note, 2)
        await child.signal(Ledger.close)
        assert await again.result() == [1, 2]
    await replays(again, Foreman)


async def test_the_end_of_a_child_is_told_once_more(stage: Stage):
    async with stage.worker(Foreman, Ledger):
        base = await stage.start(Foreman.run)
        await until_event(base, "CHILD_WORKFLOW_EXECUTION_STARTED")
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        child = stage.client.get_workflow_handle(f"{stage.workflow_id}-child")
        await child.signal(Ledger.note, 2)
        await child.signal(Ledger.close)
        await base.signal(Foreman.note, 1)
        assert await base.result() == [1, 2]
        second = (await completed_tasks(base))[1]
        again = await reset(stage, second)
        assert await again.result() == [1, 2]
    assert "CHILD_WORKFLOW_EXECUTION_COMPLETED" in (await event_names(again))[second:]
    await replays(again, Foreman)


async def test_signals_of_the_runs_that_followed_are_given_too(stage: Stage):
    async with stage.worker(Volumes):
        base = await stage.start(Volumes.run, 1)
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        first = run_of(stage, base.first_execution_run_id)
        await first.signal(Volumes.note, 1)
        await until_event(first, "WORKFLOW_EXECUTION_CONTINUED_AS_NEW")
        await stage.client.get_workflow_handle(stage.workflow_id).signal(
            Volumes.note, 2
        )
        again = await reset(stage, 4, run_id=base.first_execution_run_id)
        assert await again.result() == [1, 2]


async def test_a_reset_of_a_reset(stage: Stage):
    async with stage.worker(GreetTwice, activities=[greet]):
        base = await stage.start(GreetTwice.run, "Ada")
        await base.result()
        once = await reset(stage, (await completed_tasks(base))[0])
        await once.result()
        twice = await reset(stage, (await completed_tasks(once))[1])
        assert (await twice.result())[0] == "Hello, Ada!"
    started = (await events(twice))[0].workflow_execution_started_event_attributes
    assert started.original_execution_run_id == base.first_execution_run_id
    await replays(twice, GreetTwice)


@pytest.mark.parametrize(
    ("event_id", "message"),
    [
        (1, "Workflow task finish ID must be > 1 && <= workflow last event ID."),
        (999, "Workflow task finish ID must be > 1 && <= workflow last event ID."),
        (
            6,
            "Can only reset workflow to event ID in range "
            "[WorkflowTaskScheduled +1, WorkflowTaskStarted + 1]: 6",
        ),
    ],
)
async def test_only_a_workflow_task_will_do(stage: Stage, event_id: int, message: str):
    async with stage.worker(GreetTwice, activities=[greet]):
        await (await stage.start(GreetTwice.run, "Ada")).result()
    with pytest.raises(RPCError) as refusal:
        await reset(stage, event_id)
    assert refusal.value.status == RPCStatusCode.INVALID_ARGUMENT
    assert refusal.value.message == message


async def test_a_reset_that_is_asked_for_twice_happens_once(stage: Stage):
    async with stage.worker(Inbox):
        base = await stage.start(Inbox.run)
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        again = await reset(stage, 4, request_id="the same")
        assert (await reset(stage, 4, request_id="the same")).run_id == again.run_id
        assert (await reset(stage, 4)).run_id != again.run_id
    await stage.client.get_workflow_handle(stage.workflow_id).terminate()


async def test_a_reset_of_nothing_is_refused(stage: Stage):
    with pytest.raises(RPCError) as refusal:
        await reset(stage, 4)
    assert refusal.value.status == RPCStatusCode.NOT_FOUND


async def test_the_task_itself_may_be_named_by_its_start(stage: Stage):
    async with stage.worker(Inbox):
        base = await stage.start(Inbox.run)
        await until_event(base, "WORKFLOW_TASK_COMPLETED")
        again = await reset(stage, 3)
        assert (await event_names(again))[:5] == [
            "WORKFLOW_EXECUTION_STARTED",
            "WORKFLOW_TASK_SCHEDULED",
            "WORKFLOW_TASK_STARTED",
            "WORKFLOW_TASK_FAILED",
            "WORKFLOW_TASK_SCHEDULED",
        ]
        await again.terminate()
