"""Workflows that start children and wait for them, leave them behind or cancel them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from app.activities import Seat
    from app.chain_workflows import Relay, RunRelay, SucceedOnRun, own_seat
    from app.message_workflows import FixedGreeting, Inbox, Refuse, Sleep


def child_id(name: str) -> str:
    return f"{workflow.info().workflow_id}-{name}"


@workflow.defn
class DelegateGreeting:
    @workflow.run
    async def run(self, name: str) -> str:
        return await workflow.execute_child_workflow(
            FixedGreeting.run, name, id=child_id("greeting")
        )


@workflow.defn
class DelegateOrder:
    @workflow.run
    async def run(self, order: str) -> None:
        await workflow.execute_child_workflow(Refuse.run, order, id=child_id("order"))


@workflow.defn
class DelegateRelay:
    @workflow.run
    async def run(self, runners: int) -> Relay:
        return await workflow.execute_child_workflow(
            RunRelay.run, Relay(runners), id=child_id("relay")
        )


@workflow.defn
class DelegateStubbornly:
    @workflow.run
    async def run(self, wanted: int) -> int:
        return await workflow.execute_child_workflow(
            SucceedOnRun.run,
            wanted,
            id=child_id("job"),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=50)),
        )


@workflow.defn
class WaitForInbox:
    """Returns the letters of its child, or ends as the child does."""

    @workflow.run
    async def run(self, run_timeout_seconds: float | None) -> list[str]:
        run_timeout = (
            timedelta(seconds=run_timeout_seconds) if run_timeout_seconds else None
        )
        return await workflow.execute_child_workflow(
            Inbox.run, id=child_id("inbox"), run_timeout=run_timeout
        )


@workflow.defn
class Linger:
    """Once cancelled, takes its leave only when it is told to."""

    def __init__(self) -> None:
        self.may_go = False

    @workflow.run
    async def run(self) -> str:
        try:
            await workflow.wait_condition(lambda: self.may_go)
        except asyncio.CancelledError:
            await workflow.wait_condition(lambda: self.may_go)
            raise
        return "nobody cancelled me"

    @workflow.signal
    def go(self) -> None:
        self.may_go = True


@workflow.defn
class PassCancellationOn:
    """Is cancelled while its child runs; what the child hears of it is up to the argument.

    Ends only when it is told to, too: Temporal forgets what a workflow asked for in its last task.
    """

    def __init__(self) -> None:
        self.has_let_go = False
        self.may_end = False

    @workflow.run
    async def run(self, cancellation_type: ChildWorkflowCancellationType) -> None:
        try:
            await workflow.execute_child_workflow(
                Linger.run,
                id=child_id("linger"),
                cancellation_type=cancellation_type,
                parent_close_policy=ParentClosePolicy.ABANDON,
            )
        except ChildWorkflowError:
            self.has_let_go = True
            await workflow.wait_condition(lambda: self.may_end)
            raise

    @workflow.signal
    def end(self) -> None:
        self.may_end = True

    @workflow.query
    def let_go(self) -> bool:
        return self.has_let_go


@workflow.defn
class TakeIdTwice:
    @workflow.run
    async def run(self) -> str:
        await workflow.start_child_workflow(Inbox.run, id=child_id("inbox"))
        try:
            await workflow.start_child_workflow(Sleep.run, 1, id=child_id("inbox"))
        except WorkflowAlreadyStartedError as error:
            return f"{error.workflow_type} {error.workflow_id} was there before"
        return "two workflows have one id"


@workflow.defn
class ReuseId:
    """Starts a child, lets it finish or not, and starts another one with its id."""

    @workflow.run
    async def run(self, policy: WorkflowIDReusePolicy, finishes_first: bool) -> str:
        id = child_id("greeting")
        if finishes_first:
            await workflow.execute_child_workflow(FixedGreeting.run, "Ada", id=id)
        else:
            await workflow.start_child_workflow(Sleep.run, 3600, id=id)
        try:
            return await workflow.execute_child_workflow(
                FixedGreeting.run, "Bob", id=id, id_reuse_policy=policy
            )
        except WorkflowAlreadyStartedError:
            return "refused"


POLICIES = {
    "terminate": ParentClosePolicy.TERMINATE,
    "abandon": ParentClosePolicy.ABANDON,
    "request_cancel": ParentClosePolicy.REQUEST_CANCEL,
}


@workflow.defn
class LeaveChildren:
    """Starts a child of each policy and leaves when it is told how."""

    def __init__(self) -> None:
        self.way = ""

    @workflow.run
    async def run(self) -> str:
        if workflow.info().continued_run_id:
            return "left as new"
        for name, policy in POLICIES.items():
            await workflow.start_child_workflow(
                Inbox.run, id=child_id(name), parent_close_policy=policy
            )
        await workflow.wait_condition(lambda: self.way != "")
        if self.way == "as new":
            workflow.continue_as_new()
        return f"left {self.way}"

    @workflow.signal
    def leave(self, way: str) -> None:
        self.way = way


@workflow.defn
class TellSeat:
    @workflow.run
    async def run(self) -> Seat:
        return own_seat()


@workflow.defn
class SeatChildren:
    """Returns what children see that set no field of their priority, all of them, or one."""

    @workflow.run
    async def run(self) -> list[Seat]:
        priorities = [
            Priority(),
            Priority(priority_key=4, fairness_key="bolt", fairness_weight=2.5),
            Priority(priority_key=1),
            Priority(fairness_key="bolt"),
            Priority(fairness_weight=2.5),
        ]
        return [
            await workflow.execute_child_workflow(
                TellSeat.run, id=child_id(str(number)), priority=priority
            )
            for number, priority in enumerate(priorities)
        ]
