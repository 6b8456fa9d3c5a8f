"""What a second start with the same workflow id does."""

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from app.message_workflows import Inbox, Refuse
from support import Stage


async def test_a_running_workflow_id_cannot_be_started_again(stage: Stage):
    handle = await stage.start(Inbox.run)
    with pytest.raises(WorkflowAlreadyStartedError) as refusal:
        await stage.start(Inbox.run)
    assert refusal.value.workflow_id == handle.id
    assert refusal.value.run_id == handle.first_execution_run_id
    await handle.terminate()


async def test_a_closed_workflow_id_may_be_used_again_by_default(stage: Stage):
    first = await stage.start(Inbox.run)
    await first.terminate()
    second = await stage.start(Inbox.run)
    assert first.first_execution_run_id != second.first_execution_run_id
    await second.terminate()


async def test_reject_duplicate_refuses_the_id_of_a_closed_workflow(stage: Stage):
    await (await stage.start(Inbox.run)).terminate()
    with pytest.raises(WorkflowAlreadyStartedError):
        await stage.start(
            Inbox.run, id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE
        )


async def test_allow_duplicate_failed_only_asks_how_the_last_run_ended(stage: Stage):
    failed_only = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
    async with stage.worker(Inbox, Refuse):
        with pytest.raises(WorkflowFailureError):
            await stage.execute(Refuse.run, "A-17")
        handle = await stage.start(Inbox.run, id_reuse_policy=failed_only)
        await handle.signal(Inbox.close)
        await handle.result()
        with pytest.raises(WorkflowAlreadyStartedError):
            await stage.start(Inbox.run, id_reuse_policy=failed_only)


async def test_use_existing_joins_the_running_workflow(stage: Stage):
    first = await stage.start(Inbox.run)
    second = await stage.start(
        Inbox.run, id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING
    )
    assert first.first_execution_run_id == second.first_execution_run_id
    await first.terminate()


async def test_terminate_existing_replaces_the_running_workflow(stage: Stage):
    first = await stage.start(Inbox.run)
    second = await stage.start(
        Inbox.run, id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING
    )
    assert first.first_execution_run_id != second.first_execution_run_id
    old_run = stage.client.get_workflow_handle(
        stage.workflow_id, run_id=first.first_execution_run_id
    )
    assert (await old_run.describe()).status == WorkflowExecutionStatus.TERMINATED
    assert (await second.describe()).status == WorkflowExecutionStatus.RUNNING
    await second.terminate()
