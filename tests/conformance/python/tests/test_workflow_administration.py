"""Operators change the options of a workflow, and delete workflows."""

import pytest
from temporalio.api.common.v1 import Priority
from temporalio.api.workflow.v1 import WorkflowExecutionOptions
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from app.message_workflows import FixedGreeting, Sleep
from app.turns import Turns, VisitOnce
from operator_desk import OperatorDesk
from support import Stage, event_names, events, until
from turn_taking import ONE_BY_ONE, Plan, activity_turns, errands


# Made against 1.32.1: the server inside the CLI that we pin knows no priority here.
async def test_a_new_priority_is_an_event_and_wakes_nobody(stage: Stage):
    async with stage.worker(Sleep):
        handle = await stage.start(Sleep.run, 3600.0)
        desk = OperatorDesk(stage.client, handle)

        async def sleeps() -> bool:
            return "TIMER_STARTED" in await event_names(handle)

        await until(sleeps)
        wanted = WorkflowExecutionOptions(
            priority=Priority(priority_key=2, fairness_key="acme")
        )
        assert await desk.update_workflow(["priority"], wanted) == wanted
        assert await desk.update_workflow(["priority"], wanted) == wanted
        part = WorkflowExecutionOptions(priority=Priority(fairness_weight=2.5))
        answer = await desk.update_workflow(["priority.fairness_weight"], part)
        assert answer.priority.fairness_key == "acme"
        history = await events(handle)
        assert (await event_names(handle))[-2:] == [
            "WORKFLOW_EXECUTION_OPTIONS_UPDATED",
            "WORKFLOW_EXECUTION_OPTIONS_UPDATED",
        ]
        assert history[-1].worker_may_ignore
        changed = history[-1].workflow_execution_options_updated_event_attributes
        assert changed.identity == "ada"
        assert changed.priority.fairness_weight == 2.5
        info = (await handle.describe()).raw_description.workflow_execution_info
        assert info.priority.priority_key == 2
        await handle.terminate()


async def test_a_new_priority_moves_the_workflow_task_that_waits(stage: Stage):
    turns = Turns()
    handles = [
        await stage.start(VisitOnce.run, name, id=f"{stage.workflow_id}-{name}")
        for name in ("first", "second")
    ]
    urgent = WorkflowExecutionOptions(priority=Priority(priority_key=1))
    desk = OperatorDesk(stage.client, handles[1])
    await desk.update_workflow(["priority.priority_key"], urgent)
    async with stage.worker(VisitOnce, activities=[turns.take_turn], **ONE_BY_ONE):
        for handle in handles:
            await handle.result()
    assert turns.taken == ["second", "first"]


async def test_a_new_priority_moves_the_activities_that_wait_and_inherit_it(
    stage: Stage,
):
    async def hurry() -> None:
        urgent = WorkflowExecutionOptions(priority=Priority(priority_key=1))
        handle = stage.client.get_workflow_handle(f"{stage.workflow_id}-1")
        desk = OperatorDesk(stage.client, handle)
        await desk.update_workflow(["priority.priority_key"], urgent)

    mixed = [*errands("heir", 2), *errands("own", 1, priority_key=4)]
    taken = await activity_turns(
        stage, Plan(errands("other", 2)), Plan(mixed), meanwhile=hurry
    )
    assert taken == ["heir 1", "heir 2", "other 1", "other 2", "own 1"]


async def test_options_that_are_none_are_refused(stage: Stage):
    desk = OperatorDesk(stage.client, await stage.start(Sleep.run, 3600.0))
    with pytest.raises(RPCError) as refusal:
        await desk.update_workflow(["nonsense"], WorkflowExecutionOptions())
    assert refusal.value.status == RPCStatusCode.INVALID_ARGUMENT
    await desk.handle.terminate()


async def until_gone(handle: WorkflowHandle) -> None:
    async def is_gone() -> bool:
        try:
            await handle.describe()
        except RPCError as refusal:
            return refusal.status == RPCStatusCode.NOT_FOUND
        return False

    await until(is_gone)


async def test_a_deleted_workflow_leaves_nothing(stage: Stage):
    async with stage.worker(FixedGreeting):
        handle = await stage.start(FixedGreeting.run, "Ada")
        await handle.result()
    desk = OperatorDesk(stage.client, handle)
    await desk.delete()
    await until_gone(handle)
    with pytest.raises(RPCError) as refusal:
        await events(handle)
    assert refusal.value.status == RPCStatusCode.NOT_FOUND
    with pytest.raises(RPCError) as refusal:
        await desk.delete()
    assert refusal.value.status == RPCStatusCode.NOT_FOUND


async def test_a_running_workflow_is_terminated_and_deleted(stage: Stage):
    async with stage.worker(Sleep):
        handle = await stage.start(Sleep.run, 3600.0)

        async def sleeps() -> bool:
            return "TIMER_STARTED" in await event_names(handle)

        await until(sleeps)
        await OperatorDesk(stage.client, handle).delete(handle.first_execution_run_id)
        await until_gone(handle)
        # Its id is free again.
        again = await stage.start(Sleep.run, 3600.0)
        assert again.first_execution_run_id != handle.first_execution_run_id
        await again.terminate()
