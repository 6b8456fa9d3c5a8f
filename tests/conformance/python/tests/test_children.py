"""Child workflows: how they end, what their parents learn of it, and who outlives whom."""

import pytest
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import Priority, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    TerminatedError,
    TimeoutError,
)
from temporalio.workflow import ChildWorkflowCancellationType

from app.activities import Seat
from app.chain_workflows import RunRelay, SucceedOnRun
from app.child_workflows import (
    DelegateGreeting,
    DelegateOrder,
    DelegateRelay,
    DelegateStubbornly,
    LeaveChildren,
    Linger,
    PassCancellationOn,
    ReuseId,
    SeatChildren,
    TakeIdTwice,
    TellSeat,
    WaitForInbox,
)
from app.message_workflows import FixedGreeting, Inbox, Refuse, Sleep
from support import Stage, event_names, replays, until, until_event

RUNNING = WorkflowExecutionStatus.RUNNING
CANCELED = WorkflowExecutionStatus.CANCELED
TERMINATED = WorkflowExecutionStatus.TERMINATED


def child_of(stage: Stage, name: str) -> WorkflowHandle:
    return stage.client.get_workflow_handle(f"{stage.workflow_id}-{name}")


async def status(handle: WorkflowHandle) -> WorkflowExecutionStatus | None:
    return (await handle.describe()).status


async def until_status(handle: WorkflowHandle, wanted: WorkflowExecutionStatus) -> None:
    async def has_status() -> bool:
        return await status(handle) == wanted

    await until(has_status)


async def child_failure(handle: WorkflowHandle) -> ChildWorkflowError:
    with pytest.raises(WorkflowFailureError) as failure:
        await handle.result()
    assert isinstance(failure.value.cause, ChildWorkflowError)
    return failure.value.cause


async def test_a_child_completes_and_its_parent_gets_the_result(stage: Stage):
    async with stage.worker(DelegateGreeting, FixedGreeting):
        handle = await stage.start(DelegateGreeting.run, "Ada")
        assert await handle.result() == "Hello, Ada!"
    history = await event_names(handle)
    # Whether a task lies between the child's start and its end is a matter of chance.
    assert [name for name in history if not name.startswith("WORKFLOW_TASK")] == [
        "WORKFLOW_EXECUTION_STARTED",
        "START_CHILD_WORKFLOW_EXECUTION_INITIATED",
        "CHILD_WORKFLOW_EXECUTION_STARTED",
        "CHILD_WORKFLOW_EXECUTION_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]


async def test_a_failed_child_is_the_cause_of_its_parents_failure(stage: Stage):
    async with stage.worker(DelegateOrder, Refuse):
        failure = await child_failure(await stage.start(DelegateOrder.run, "A-17"))
    assert failure.workflow_type == "Refuse"
    assert failure.workflow_id == f"{stage.workflow_id}-order"
    assert failure.run_id == (await child_of(stage, "order").describe()).run_id
    assert isinstance(failure.cause, ApplicationError)
    assert failure.cause.type == "OutOfStock"
    assert failure.cause.message == "order A-17 is out of stock"
    assert list(failure.cause.details) == [{"order": "A-17", "left": 0}]


async def test_a_terminated_child_is_the_cause_of_its_parents_failure(stage: Stage):
    async with stage.worker(WaitForInbox, Inbox):
        handle = await stage.start(WaitForInbox.run, None)
        await until_event(handle, "CHILD_WORKFLOW_EXECUTION_STARTED")
        await child_of(stage, "inbox").terminate("spring cleaning")
        failure = await child_failure(handle)
    assert isinstance(failure.cause, TerminatedError)


async def test_a_child_that_times_out_is_the_cause_of_its_parents_failure(stage: Stage):
    async with stage.worker(WaitForInbox, Inbox):
        failure = await child_failure(await stage.start(WaitForInbox.run, 1))
    assert isinstance(failure.cause, TimeoutError)
    assert await status(child_of(stage, "inbox")) == WorkflowExecutionStatus.TIMED_OUT


async def test_a_child_that_somebody_else_cancels_ends_as_cancelled(stage: Stage):
    async with stage.worker(WaitForInbox, Inbox):
        handle = await stage.start(WaitForInbox.run, None)
        await until_event(handle, "CHILD_WORKFLOW_EXECUTION_STARTED")
        await child_of(stage, "inbox").cancel()
        failure = await child_failure(handle)
    assert isinstance(failure.cause, CancelledError)
    assert await status(child_of(stage, "inbox")) == CANCELED


async def cancel_parent(
    stage: Stage, cancellation_type: ChildWorkflowCancellationType
) -> WorkflowHandle:
    handle = await stage.start(PassCancellationOn.run, cancellation_type)
    await until_event(handle, "CHILD_WORKFLOW_EXECUTION_STARTED")
    # So that the cancellation finds the child at work.
    await until_event(child_of(stage, "linger"), "WORKFLOW_TASK_COMPLETED")
    await handle.cancel()
    return handle


async def ends_as_cancelled(handle: WorkflowHandle) -> None:
    await handle.signal(PassCancellationOn.end)
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert await status(handle) == CANCELED


async def test_a_parent_that_waits_for_a_cancellation_outlives_its_child(stage: Stage):
    async with stage.worker(PassCancellationOn, Linger):
        handle = await cancel_parent(
            stage, ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED
        )
        child = child_of(stage, "linger")
        await until_event(child, "WORKFLOW_EXECUTION_CANCEL_REQUESTED")
        await until_event(handle, "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED")
        assert not await handle.query(PassCancellationOn.let_go)
        await child.signal(Linger.go)
        await ends_as_cancelled(handle)
    assert await status(child) == CANCELED
    assert "CHILD_WORKFLOW_EXECUTION_CANCELED" in await event_names(handle)
    await replays(handle, PassCancellationOn)


async def test_a_parent_that_only_tries_to_cancel_does_not_wait_for_its_child(
    stage: Stage,
):
    async with stage.worker(PassCancellationOn, Linger):
        handle = await cancel_parent(stage, ChildWorkflowCancellationType.TRY_CANCEL)
        child = child_of(stage, "linger")
        await until_event(child, "WORKFLOW_EXECUTION_CANCEL_REQUESTED")
        assert await handle.query(PassCancellationOn.let_go)
        await ends_as_cancelled(handle)
        assert await status(child) == RUNNING
        await child.signal(Linger.go)
        await until_status(child, CANCELED)


async def test_an_abandoned_child_never_hears_of_the_cancellation(stage: Stage):
    async with stage.worker(PassCancellationOn, Linger):
        handle = await cancel_parent(stage, ChildWorkflowCancellationType.ABANDON)
        await ends_as_cancelled(handle)
        child = child_of(stage, "linger")
        await child.signal(Linger.go)
        assert await child.result() == "nobody cancelled me"
    assert "WORKFLOW_EXECUTION_CANCEL_REQUESTED" not in await event_names(child)


async def test_a_child_whose_id_is_taken_is_refused_as_already_started(stage: Stage):
    async with stage.worker(TakeIdTwice, Inbox, Sleep):
        handle = await stage.start(TakeIdTwice.run)
        inbox = f"{stage.workflow_id}-inbox"
        assert await handle.result() == f"Sleep {inbox} was there before"
    assert "START_CHILD_WORKFLOW_EXECUTION_FAILED" in await event_names(handle)


async def second_child_of_an_id(
    stage: Stage, policy: WorkflowIDReusePolicy, finishes_first: bool
) -> str:
    async with stage.worker(ReuseId, FixedGreeting, Sleep):
        return await stage.execute(ReuseId.run, policy, finishes_first)


async def test_a_finished_childs_id_may_be_used_again_if_the_policy_allows_it(
    stage: Stage,
):
    policy = WorkflowIDReusePolicy.ALLOW_DUPLICATE
    assert await second_child_of_an_id(stage, policy, True) == "Hello, Bob!"


async def test_allow_duplicate_failed_only_refuses_a_successful_childs_id(stage: Stage):
    policy = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
    assert await second_child_of_an_id(stage, policy, True) == "refused"


async def test_reject_duplicate_refuses_a_finished_childs_id(stage: Stage):
    policy = WorkflowIDReusePolicy.REJECT_DUPLICATE
    assert await second_child_of_an_id(stage, policy, True) == "refused"


async def test_terminate_if_running_replaces_a_running_child(stage: Stage):
    policy = WorkflowIDReusePolicy.TERMINATE_IF_RUNNING
    assert await second_child_of_an_id(stage, policy, False) == "Hello, Bob!"
    parent = stage.client.get_workflow_handle(stage.workflow_id)
    assert "CHILD_WORKFLOW_EXECUTION_TERMINATED" in await event_names(parent)


async def check_children_left_behind(stage: Stage, way: str) -> None:
    """Lets a parent of three children leave and looks at what becomes of each of them."""
    terminated, abandoned, cancelled = (
        child_of(stage, name) for name in ("terminate", "abandon", "request_cancel")
    )
    async with stage.worker(LeaveChildren, Inbox):
        parent = await stage.start(LeaveChildren.run)
        await until_children_started(parent, 3)
        if way == "by force":
            await parent.terminate()
        else:
            await parent.signal(LeaveChildren.leave, way)
            assert await parent.result() == f"left {way}"
        await until_status(terminated, TERMINATED)
        await until_status(cancelled, CANCELED)
        assert await status(abandoned) == RUNNING
        await abandoned.signal(Inbox.deliver, "to whom it may concern")
        await abandoned.signal(Inbox.close)
        assert await abandoned.result() == ["to whom it may concern"]


async def until_children_started(parent: WorkflowHandle, count: int) -> None:
    async def have_started() -> bool:
        history = await event_names(parent)
        return history.count("CHILD_WORKFLOW_EXECUTION_STARTED") == count

    await until(have_started)


async def test_a_parent_that_completes_treats_each_child_by_its_close_policy(
    stage: Stage,
):
    await check_children_left_behind(stage, "for good")


async def test_a_terminated_parent_treats_each_child_by_its_close_policy(stage: Stage):
    await check_children_left_behind(stage, "by force")


async def test_a_parent_that_continues_as_new_treats_each_child_by_its_close_policy(
    stage: Stage,
):
    await check_children_left_behind(stage, "as new")


async def test_a_child_that_continues_as_new_is_one_child(stage: Stage):
    async with stage.worker(DelegateRelay, RunRelay):
        handle = await stage.start(DelegateRelay.run, 3)
        relay = await handle.result()
    assert len(set(relay.run_ids)) == 3
    history = await event_names(handle)
    assert history.count("CHILD_WORKFLOW_EXECUTION_STARTED") == 1
    assert history.count("CHILD_WORKFLOW_EXECUTION_COMPLETED") == 1
    # The last run still knows whose child it is.
    description = await child_of(stage, "relay").describe()
    assert description.run_id == relay.run_ids[-1]
    assert description.parent_id == handle.id
    assert description.root_id == handle.id


async def test_a_child_that_is_retried_is_one_child(stage: Stage):
    async with stage.worker(DelegateStubbornly, SucceedOnRun):
        handle = await stage.start(DelegateStubbornly.run, 3)
        assert await handle.result() == 3
    history = await event_names(handle)
    assert history.count("CHILD_WORKFLOW_EXECUTION_STARTED") == 1
    assert "CHILD_WORKFLOW_EXECUTION_FAILED" not in history


async def test_a_child_inherits_each_field_of_its_priority_that_it_does_not_set(
    stage: Stage,
):
    async with stage.worker(SeatChildren, TellSeat):
        seats = await stage.execute(
            SeatChildren.run,
            priority=Priority(priority_key=2, fairness_key="t", fairness_weight=4.0),
        )
    assert seats == [
        Seat(2, "t", 4.0),
        Seat(4, "bolt", 2.5),
        Seat(1, "t", 4.0),
        Seat(2, "bolt", 4.0),
        Seat(2, "t", 2.5),
    ]


async def test_a_description_shows_pending_children_their_parent_and_their_root(
    stage: Stage,
):
    async with stage.worker(WaitForInbox, Inbox):
        handle = await stage.start(WaitForInbox.run, None)
        await until_event(handle, "CHILD_WORKFLOW_EXECUTION_STARTED")
        child = child_of(stage, "inbox")
        described = await child.describe()
        (pending,) = (await handle.describe()).raw_description.pending_children
        assert pending.workflow_id == child.id
        assert pending.run_id == described.run_id
        assert pending.workflow_type_name == "Inbox"
        assert described.parent_id == described.root_id == handle.id
        assert described.parent_run_id == handle.first_execution_run_id
        assert described.root_run_id == handle.first_execution_run_id
        await child.signal(Inbox.close)
        await handle.result()
    assert not (await handle.describe()).raw_description.pending_children


async def test_the_history_of_a_parent_replays(stage: Stage):
    async with stage.worker(DelegateGreeting, FixedGreeting):
        handle = await stage.start(DelegateGreeting.run, "Ada")
        await handle.result()
    await replays(handle, DelegateGreeting)


async def test_the_history_of_a_parent_whose_child_failed_replays(stage: Stage):
    async with stage.worker(DelegateOrder, Refuse):
        handle = await stage.start(DelegateOrder.run, "A-17")
        await child_failure(handle)
    await replays(handle, DelegateOrder)
