"""Update-with-start: one call that finds or makes the workflow and has it answer."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import (
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError

from app.update_workflows import Account
from support import Stage, event_names, replays, until_admitted, within_bound

FAIL = WorkflowIDConflictPolicy.FAIL
USE_EXISTING = WorkflowIDConflictPolicy.USE_EXISTING
TERMINATE_EXISTING = WorkflowIDConflictPolicy.TERMINATE_EXISTING


class Bank:
    """Deposits into the stage's account, which is opened when there is none."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def opening(
        self, policy: WorkflowIDConflictPolicy, **options: Any
    ) -> WithStartWorkflowOperation:
        return WithStartWorkflowOperation(
            Account.run,
            False,
            id=self.stage.workflow_id,
            task_queue=self.stage.name,
            id_conflict_policy=policy,
            **options,
        )

    async def deposit(
        self, amount: int, opening: WithStartWorkflowOperation, **options: Any
    ) -> int:
        return await self.stage.client.execute_update_with_start_workflow(
            Account.deposit, amount, start_workflow_operation=opening, **options
        )


@pytest.fixture
def bank(stage: Stage) -> Bank:
    return Bank(stage)


async def run_of(opening: WithStartWorkflowOperation) -> str | None:
    return (await opening.workflow_handle()).result_run_id


async def test_an_update_starts_the_workflow_and_rides_on_its_first_task(
    stage: Stage, bank: Bank
):
    async with stage.worker(Account):
        opening = bank.opening(FAIL)
        assert await bank.deposit(5, opening) == 5
        handle = await opening.workflow_handle()
        assert await event_names(handle) == [
            "WORKFLOW_EXECUTION_STARTED",
            "WORKFLOW_TASK_SCHEDULED",
            "WORKFLOW_TASK_STARTED",
            "WORKFLOW_TASK_COMPLETED",
            "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
            "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
        ]
        await handle.signal(Account.close)
        assert await handle.result() == ["deposit 5"]
        await replays(handle, Account)


async def test_an_update_uses_the_workflow_that_runs_when_it_may(
    stage: Stage, bank: Bank
):
    async with stage.worker(Account):
        first, second = bank.opening(USE_EXISTING), bank.opening(USE_EXISTING)
        assert await bank.deposit(5, first) == 5
        assert await bank.deposit(7, second) == 12
        assert await run_of(first) == await run_of(second)
        await (await first.workflow_handle()).terminate()


async def test_an_update_waits_for_acceptance_and_polls_for_the_result(
    stage: Stage, bank: Bank
):
    async with stage.worker(Account):
        opening = bank.opening(FAIL)
        update = await stage.client.start_update_with_start_workflow(
            Account.transfer,
            "Ada",
            wait_for_stage=WorkflowUpdateStage.ACCEPTED,
            start_workflow_operation=opening,
        )
        handle = await opening.workflow_handle()
        assert update.workflow_run_id == handle.result_run_id
        await handle.signal(Account.approve, "Ada")
        assert await update.result() == "Ada has the money"
        await handle.terminate()


async def test_a_workflow_that_runs_already_is_a_conflict_and_hears_nothing(
    stage: Stage, bank: Bank
):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.execute_update(Account.deposit, 5)
        before = await event_names(handle)
        opening = bank.opening(FAIL)
        with pytest.raises(WorkflowAlreadyStartedError) as conflict:
            await bank.deposit(7, opening)
        assert conflict.value.run_id == handle.result_run_id
        with pytest.raises(WorkflowAlreadyStartedError):
            await opening.workflow_handle()
        assert await event_names(handle) == before
        await handle.terminate()


async def test_an_update_may_replace_the_workflow_that_runs(stage: Stage, bank: Bank):
    async with stage.worker(Account):
        first = await stage.start(Account.run)
        await first.execute_update(Account.deposit, 5)
        opening = bank.opening(TERMINATE_EXISTING)
        assert await bank.deposit(7, opening) == 7
        assert await run_of(opening) != first.result_run_id
        old = stage.client.get_workflow_handle(first.id, run_id=first.result_run_id)
        assert (await old.describe()).status == WorkflowExecutionStatus.TERMINATED
        await (await opening.workflow_handle()).terminate()


async def test_an_update_id_sent_twice_counts_once_and_is_no_conflict(
    stage: Stage, bank: Bank
):
    async with stage.worker(Account):
        first, second = bank.opening(FAIL), bank.opening(FAIL)
        assert await bank.deposit(5, first, id="once") == 5
        assert await bank.deposit(5, second, id="once") == 5
        assert await run_of(first) == await run_of(second)
        handle = await first.workflow_handle()
        await handle.signal(Account.close)
        assert await handle.result() == ["deposit 5"]


async def test_an_answered_update_does_not_start_a_closed_workflow_again(
    stage: Stage, bank: Bank
):
    async with stage.worker(Account):
        first, again, other = (bank.opening(FAIL) for _ in range(3))
        assert await bank.deposit(5, first, id="once") == 5
        handle = await first.workflow_handle()
        await handle.signal(Account.close)
        await handle.result()
        assert await bank.deposit(5, again, id="once") == 5
        assert await run_of(again) == await run_of(first)
        # Another update is new work and gets a new run.
        assert await bank.deposit(7, other, id="twice") == 7
        assert await run_of(other) != await run_of(first)
        await (await other.workflow_handle()).terminate()


async def test_the_reuse_policy_counts_for_a_closed_workflow(stage: Stage, bank: Bank):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.signal(Account.close)
        await handle.result()
        opening = bank.opening(
            FAIL, id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE
        )
        with pytest.raises(WorkflowAlreadyStartedError):
            await bank.deposit(5, opening)


async def test_a_refused_update_leaves_the_workflow_that_it_started(
    stage: Stage, bank: Bank
):
    async with stage.worker(Account):
        opening = bank.opening(FAIL)
        with pytest.raises(WorkflowUpdateFailedError) as refusal:
            await bank.deposit(-5, opening)
        assert isinstance(refusal.value.cause, ApplicationError)
        assert refusal.value.cause.message == "-5 is not an amount"
        handle = await opening.workflow_handle()
        assert await handle.execute_update(Account.deposit, 5) == 5
        await handle.signal(Account.close)
        assert await handle.result() == ["deposit 5"]
        await replays(handle, Account)


async def test_a_call_that_gives_up_leaves_the_workflow_that_it_started(
    stage: Stage, bank: Bank
):
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
        await bank.deposit(
            5, bank.opening(FAIL), id="five", rpc_timeout=timedelta(seconds=1)
        )
    handle = stage.client.get_workflow_handle(stage.workflow_id)
    assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
    async with stage.worker(Account):
        opening = bank.opening(USE_EXISTING)
        assert await within_bound(bank.deposit(5, opening, id="five")) == 5
        await handle.signal(Account.close)
        assert await handle.result() == ["deposit 5"]


async def test_an_update_starts_a_new_run_when_the_one_it_waits_for_is_closed(
    stage: Stage, bank: Bank
):
    first = await stage.start(Account.run)
    opening = bank.opening(USE_EXISTING)
    deposit = asyncio.create_task(bank.deposit(5, opening, id="five"))
    await until_admitted(first, "five")
    await first.terminate()
    async with stage.worker(Account):
        assert await within_bound(deposit) == 5
        assert await run_of(opening) != first.result_run_id
        await (await opening.workflow_handle()).terminate()


async def test_callers_at_once_share_one_workflow(stage: Stage, bank: Bank):
    async with stage.worker(Account):
        openings = [bank.opening(USE_EXISTING) for _ in range(5)]
        deposits = [bank.deposit(1, opening) for opening in openings]
        assert sorted(await asyncio.gather(*deposits)) == [1, 2, 3, 4, 5]
        assert len({await run_of(opening) for opening in openings}) == 1
        await (await openings[0].workflow_handle()).terminate()


async def test_a_start_that_makes_no_sense_starts_nothing(stage: Stage, bank: Bank):
    opening = bank.opening(FAIL, cron_schedule="* * * * *")
    with pytest.raises(RPCError, match="CronSchedule"):
        await bank.deposit(5, opening)
    with pytest.raises(RPCError):
        await stage.client.get_workflow_handle(stage.workflow_id).describe()
