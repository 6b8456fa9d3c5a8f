"""Updates that outlive a worker or a run: restarts, closed workflows, chains, late workers."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import (
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.client import WorkflowUpdateStage as Stages
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from app.update_workflows import (
    Account,
    BrokenTill,
    FixedTill,
    LastOrders,
    TravellingAccount,
)
from support import (
    Stage,
    event_names,
    replays,
    until,
    until_admitted,
    until_event,
    within_bound,
)

ACCEPTED = "WORKFLOW_EXECUTION_UPDATE_ACCEPTED"
COMPLETED = "WORKFLOW_EXECUTION_UPDATE_COMPLETED"


async def start_transfer(handle: WorkflowHandle, to: str):
    return await handle.start_update(
        Account.transfer, to, id=to, wait_for_stage=Stages.ACCEPTED
    )


async def is_not_found(awaitable: Any, match: str = "") -> None:
    with pytest.raises(RPCError, match=match) as refused:
        await awaitable
    assert refused.value.status == RPCStatusCode.NOT_FOUND


async def was_left_unfinished(awaitable: Any) -> None:
    with pytest.raises(WorkflowUpdateFailedError) as failure:
        await awaitable
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "AcceptedUpdateCompletedWorkflow"
    assert cause.message == (
        "Workflow Update failed because the Workflow completed before the Update completed."
    )
    assert cause.non_retryable


async def test_an_update_may_close_the_workflow_in_its_own_task(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.execute_update(Account.deposit, 5)
        assert await handle.execute_update(Account.close_at_once) == "closed with 5"
        assert await handle.result() == ["deposit 5"]
        assert (await event_names(handle))[-4:] == [
            "WORKFLOW_TASK_COMPLETED",
            ACCEPTED,
            COMPLETED,
            "WORKFLOW_EXECUTION_COMPLETED",
        ]
        await replays(handle, Account)


async def test_a_closed_workflow_still_tells_the_outcome_of_its_updates(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.execute_update(Account.deposit, 5, id="five")
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Account.withdraw, 6, id="six")
        await handle.signal(Account.close)
        await handle.result()
    assert await handle.execute_update(Account.deposit, 5, id="five") == 5
    assert await handle.get_update_handle("five").result() == 5
    with pytest.raises(WorkflowUpdateFailedError) as failure:
        await handle.get_update_handle("six").result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == "Overdrawn"


async def test_updates_of_closed_and_unknown_workflows_are_refused_as_not_found(
    stage: Stage,
):
    handle = stage.client.get_workflow_handle(stage.workflow_id)
    await is_not_found(handle.execute_update("deposit", 5))
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.signal(Account.close)
        await handle.result()
        await is_not_found(handle.execute_update(Account.deposit, 5), "completed")
        await is_not_found(handle.get_update_handle("nobody").result(), "nobody")


async def test_an_accepted_update_fails_when_the_workflow_completes_before_it(
    stage: Stage,
):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        update = await start_transfer(handle, "Ada")
        result = asyncio.create_task(update.result())
        await handle.signal(Account.close)
        assert await handle.result() == ["transfer to Ada"]
        await was_left_unfinished(result)
        assert COMPLETED not in await event_names(handle)
        await replays(handle, Account)
    # Who asks later hears the same, by either way of asking.
    await was_left_unfinished(handle.get_update_handle("Ada").result())
    await was_left_unfinished(handle.execute_update(Account.transfer, "Ada", id="Ada"))


async def test_an_accepted_update_fails_when_the_workflow_is_terminated(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        update = await start_transfer(handle, "Ada")
        await handle.terminate()
        await was_left_unfinished(update.result())


async def test_an_update_that_nobody_heard_is_refused_when_the_workflow_is_terminated(
    stage: Stage,
):
    handle = await stage.start(Account.run)
    update = asyncio.create_task(handle.execute_update(Account.deposit, 5, id="five"))
    await until_admitted(handle, "five")
    await handle.terminate()
    await is_not_found(update, "aborted by closing workflow")
    await is_not_found(handle.get_update_handle("five").result())


async def test_a_patient_workflow_lets_its_updates_finish(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run, True)
        update = await start_transfer(handle, "Ada")
        await handle.signal(Account.close)
        assert await handle.query(Account.entries) == ["transfer to Ada"]
        await handle.signal(Account.approve, "Ada")
        assert await handle.result() == ["transfer to Ada", "transferred to Ada"]
        assert await update.result() == "Ada has the money"
        assert (await event_names(handle))[-2:] == [
            COMPLETED,
            "WORKFLOW_EXECUTION_COMPLETED",
        ]
        await replays(handle, Account)


async def test_a_call_may_give_up_before_a_worker_comes_and_ask_again(stage: Stage):
    handle = await stage.start(Account.run)
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
        await handle.execute_update(
            Account.deposit, 5, id="five", rpc_timeout=timedelta(seconds=1)
        )
    async with stage.worker(Account):
        assert await handle.execute_update(Account.deposit, 5, id="five") == 5
        await handle.signal(Account.close)
        assert await handle.result() == ["deposit 5"]
        await replays(handle, Account)


async def test_an_update_waits_for_a_worker_that_comes_later(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.execute_update(Account.deposit, 5)
    # Its last worker has gone; the run remembers it no longer or finds out in time.
    update = asyncio.create_task(handle.execute_update(Account.deposit, 7, id="seven"))
    await until_admitted(handle, "seven")
    async with stage.worker(Account):
        assert await within_bound(update) == 12
        await handle.signal(Account.close)
        assert await handle.result() == ["deposit 5", "deposit 7"]
        await replays(handle, Account)


async def test_a_handler_goes_on_under_a_new_worker(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.execute_update(Account.deposit, 5)
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Account.deposit, -1)
        update = await start_transfer(handle, "Ada")
    async with stage.worker(Account):
        assert await handle.query(Account.entries) == ["deposit 5", "transfer to Ada"]
        await handle.signal(Account.approve, "Ada")
        assert await update.result() == "Ada has the money"
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Account.deposit, -1)
        assert await handle.execute_update(Account.deposit, 7) == 12
        await handle.signal(Account.close)
        await handle.result()
        await replays(handle, Account)


async def test_a_worker_without_a_cache_replays_updates_before_every_task(stage: Stage):
    async with stage.worker(Account, max_cached_workflows=0):
        handle = await stage.start(Account.run)
        for number in range(1, 4):
            assert await handle.execute_update(Account.deposit, 1) == number
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update(Account.deposit, -1)
        update = await start_transfer(handle, "Ada")
        await handle.signal(Account.approve, "Ada")
        assert await update.result() == "Ada has the money"
        await handle.signal(Account.close)
        assert len(await handle.result()) == 5


async def test_an_update_waits_out_a_broken_deployment(stage: Stage):
    async with stage.worker(BrokenTill):
        handle = await stage.start(BrokenTill.run, task_timeout=timedelta(seconds=1))
        await until_event(handle, "WORKFLOW_TASK_COMPLETED")
        update = asyncio.create_task(handle.execute_update(BrokenTill.open))
        await until_event(handle, "WORKFLOW_TASK_FAILED")
    async with stage.worker(FixedTill):
        assert await within_bound(update) == "open"
        await replays(handle, FixedTill)
        await handle.terminate()


async def test_an_update_during_the_last_task_is_refused_when_the_workflow_leaves(
    stage: Stage,
):
    looks, may_leave = asyncio.Event(), asyncio.Event()

    @activity.defn
    async def look_around() -> None:
        looks.set()
        await may_leave.wait()

    async with stage.worker(LastOrders, activities=[look_around]):
        handle = await stage.start(LastOrders.run)
        await within_bound(looks.wait())
        order = handle.execute_update(LastOrders.order, "tea", id="tea")
        answer = asyncio.create_task(order)
        await until_admitted(handle, "tea")
        may_leave.set()
        await is_not_found(within_bound(answer), "aborted by closing workflow")
        assert await handle.result() == []


async def test_updates_find_the_newest_run_of_a_chain(stage: Stage):
    async with stage.worker(TravellingAccount):
        first = await stage.start(TravellingAccount.run, 0)
        assert await first.execute_update(TravellingAccount.deposit, 5, id="same") == 5
        await first.signal(TravellingAccount.move)
        old = stage.client.get_workflow_handle(first.id, run_id=first.result_run_id)
        await until_event(old, "WORKFLOW_EXECUTION_CONTINUED_AS_NEW")
        # Ids count by run: the second run has not heard of this one.
        chain = stage.client.get_workflow_handle(
            first.id, first_execution_run_id=first.first_execution_run_id
        )
        assert await chain.execute_update(TravellingAccount.deposit, 7, id="same") == 12
        assert await old.execute_update(TravellingAccount.deposit, 7, id="same") == 5
        await is_not_found(old.execute_update(TravellingAccount.deposit, 9))
        await chain.terminate()


async def test_an_update_of_another_chain_is_refused_as_not_found(stage: Stage):
    async with stage.worker(Account):
        first = await stage.start(Account.run)
        await first.signal(Account.close)
        await first.result()
        second = await stage.start(Account.run)
        chain = stage.client.get_workflow_handle(
            first.id, first_execution_run_id=first.first_execution_run_id
        )
        await is_not_found(chain.execute_update(Account.deposit, 5))
        await second.terminate()


async def test_an_accepted_update_does_not_follow_the_workflow_to_a_new_run(
    stage: Stage,
):
    async with stage.worker(TravellingAccount):
        handle = await stage.start(TravellingAccount.run, 0)
        update = await handle.start_update(
            TravellingAccount.transfer, wait_for_stage=Stages.ACCEPTED
        )
        await handle.signal(TravellingAccount.move)
        await was_left_unfinished(update.result())
        await handle.terminate()


async def test_an_update_that_nobody_heard_follows_the_workflow_to_its_next_attempt(
    stage: Stage,
):
    first = await stage.start(
        TravellingAccount.run,
        0,
        run_timeout=timedelta(seconds=3),
        retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10)),
    )
    chain = stage.client.get_workflow_handle(first.id)
    update = asyncio.create_task(
        chain.start_update(
            TravellingAccount.deposit, 5, wait_for_stage=Stages.COMPLETED
        )
    )

    async def has_a_second_run() -> bool:
        return (await chain.describe()).run_id != first.result_run_id

    await until(has_a_second_run)
    async with stage.worker(TravellingAccount):
        answered = await within_bound(update)
        assert await answered.result() == 5
        assert answered.workflow_run_id != first.result_run_id
        await chain.terminate()
