"""Updates of a running workflow: answers, refusals, handlers that take their time."""

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.client import WorkflowUpdateStage as Stages
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from app.activities import greet
from app.update_workflows import Account
from support import Stage, event_names, events, names, replays, until_admitted

NEW_TASK = [
    "WORKFLOW_TASK_SCHEDULED",
    "WORKFLOW_TASK_STARTED",
    "WORKFLOW_TASK_COMPLETED",
]
ACCEPTED = "WORKFLOW_EXECUTION_UPDATE_ACCEPTED"
COMPLETED = "WORKFLOW_EXECUTION_UPDATE_COMPLETED"


async def refusal(awaitable: Any) -> ApplicationError:
    with pytest.raises(WorkflowUpdateFailedError) as failure:
        await awaitable
    assert isinstance(failure.value.cause, ApplicationError)
    return failure.value.cause


async def start_transfer(handle: WorkflowHandle, to: str):
    return await handle.start_update(
        Account.transfer, to, id=to, wait_for_stage=Stages.ACCEPTED
    )


async def closes(handle: WorkflowHandle) -> list[str]:
    await handle.signal(Account.close)
    journal = await handle.result()
    await replays(handle, Account)
    return journal


async def test_an_update_changes_the_workflow_and_returns_a_value(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        assert await handle.execute_update(Account.deposit, 5) == 5
        before = await event_names(handle)
        assert await handle.execute_update(Account.deposit, 7) == 12
        assert await event_names(handle) == [*before, *NEW_TASK, ACCEPTED, COMPLETED]
        assert await closes(handle) == ["deposit 5", "deposit 7"]


async def test_the_history_keeps_the_request_and_the_outcome_of_an_update(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.execute_update(Account.deposit, 5)
        await handle.execute_update(Account.deposit, 7, id="seven")
        task, _, _, accepted, completed = (await events(handle))[-5:]
        await closes(handle)
    request = accepted.workflow_execution_update_accepted_event_attributes
    assert request.protocol_instance_id == "seven"
    assert request.accepted_request_message_id == "seven/request"
    assert request.accepted_request_sequencing_event_id == task.event_id
    assert request.accepted_request.meta.update_id == "seven"
    assert request.accepted_request.meta.identity == stage.client.identity
    assert request.accepted_request.input.name == "deposit"
    assert request.accepted_request.input.args.payloads[0].data == b"7"
    response = completed.workflow_execution_update_completed_event_attributes
    assert response.meta.update_id == "seven"
    assert response.accepted_event_id == accepted.event_id
    assert response.outcome.success.payloads[0].data == b"12"


async def test_a_refused_update_leaves_no_trace_and_the_workflow_goes_on(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.execute_update(Account.deposit, 5)
        before = await event_names(handle)
        for amount in (-1, -2, -3):
            update = handle.execute_update(Account.deposit, amount)
            assert (await refusal(update)).message == f"{amount} is not an amount"
            assert await event_names(handle) == before
        # The refused tasks never were: their ids belong to the next one.
        assert await handle.execute_update(Account.deposit, 7) == 12
        assert await event_names(handle) == [*before, *NEW_TASK, ACCEPTED, COMPLETED]
        assert await closes(handle) == ["deposit 5", "deposit 7"]


async def test_a_refusal_is_told_to_a_caller_that_waits_for_acceptance_only(
    stage: Stage,
):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        update = await handle.start_update(
            Account.deposit, -1, wait_for_stage=Stages.ACCEPTED
        )
        assert (await refusal(update.result())).type == "ValueError"
        assert await closes(handle) == []


async def test_a_refused_id_may_be_used_again(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await refusal(handle.execute_update(Account.deposit, -5, id="try"))
        assert await handle.execute_update(Account.deposit, 5, id="try") == 5
        assert await closes(handle) == ["deposit 5"]


async def test_an_update_and_a_refusal_share_the_first_task(stage: Stage):
    handle = await stage.start(Account.run)
    good = asyncio.create_task(handle.execute_update(Account.deposit, 5, id="good"))
    await until_admitted(handle, "good")
    bad = asyncio.create_task(handle.execute_update(Account.deposit, -5, id="bad"))
    await until_admitted(handle, "bad")
    async with stage.worker(Account):
        assert await good == 5
        assert (await refusal(bad)).message == "-5 is not an amount"
        assert await event_names(handle) == [
            "WORKFLOW_EXECUTION_STARTED",
            *NEW_TASK,
            ACCEPTED,
            COMPLETED,
        ]
        await closes(handle)


async def test_an_unknown_update_is_refused_by_name(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        assert "weather" in (await refusal(handle.execute_update("weather"))).message
        assert await closes(handle) == []


async def test_an_update_whose_handler_fails_is_a_failed_update_of_a_healthy_workflow(
    stage: Stage,
):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await handle.execute_update(Account.deposit, 5)
        failure = await refusal(handle.execute_update(Account.withdraw, 6))
        assert (failure.type, failure.message) == ("Overdrawn", "only 5 left")
        assert list(failure.details) == [{"balance": 5}]
        assert (await event_names(handle))[-2:] == [ACCEPTED, COMPLETED]
        assert await handle.execute_update(Account.withdraw, 5) == 0
        await closes(handle)


async def test_a_caller_waits_for_acceptance_and_polls_for_the_result(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        update = await start_transfer(handle, "Ada")
        assert update.workflow_run_id == handle.result_run_id
        history = await event_names(handle)
        assert ACCEPTED in history and COMPLETED not in history
        result = asyncio.create_task(update.result())
        await handle.signal(Account.approve, "Ada")
        assert await result == "Ada has the money"
        assert await closes(handle) == ["transfer to Ada", "transferred to Ada"]


async def test_a_handler_waits_for_activities_and_timers_while_signals_arrive(
    stage: Stage,
):
    async with stage.worker(Account, activities=[greet]):
        handle = await stage.start(Account.run)
        thanks = asyncio.create_task(handle.execute_update(Account.thank, "Ada"))
        for name in ("Bob", "Cleo"):
            await handle.signal(Account.approve, name)
        assert await thanks == ["Hello, Ada!", "Hello, dear Ada!", "good night"]
        assert await handle.execute_update(Account.transfer, "Cleo")
        await closes(handle)


async def test_updates_are_heard_in_the_order_in_which_they_were_admitted(
    stage: Stage,
):
    handle = await stage.start(Account.run)
    updates = []
    for amount in range(1, 6):
        update = handle.execute_update(Account.deposit, amount, id=f"{amount}")
        updates.append(asyncio.create_task(update))
        await until_admitted(handle, f"{amount}")
    async with stage.worker(Account):
        assert await asyncio.gather(*updates) == [1, 3, 6, 10, 15]
        journal = await closes(handle)
    assert journal == [f"deposit {amount}" for amount in range(1, 6)]


async def test_handlers_overlap_and_finish_in_their_own_order(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        updates = {to: await start_transfer(handle, to) for to in ("a", "b", "c")}
        for to in ("c", "a", "b"):
            await handle.signal(Account.approve, to)
            assert await updates[to].result() == f"{to} has the money"
        history = await events(handle)
        await closes(handle)
    accepted = {
        event.event_id: event.workflow_execution_update_accepted_event_attributes
        for event, name in zip(history, names(history))
        if name == ACCEPTED
    }
    answers = [
        event.workflow_execution_update_completed_event_attributes
        for event, name in zip(history, names(history))
        if name == COMPLETED
    ]
    assert [answer.meta.update_id for answer in answers] == ["c", "a", "b"]
    for answer in answers:
        request = accepted[answer.accepted_event_id]
        assert request.protocol_instance_id == answer.meta.update_id


async def test_many_updates_at_once_are_all_answered(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        updates = [handle.execute_update(Account.deposit, 1) for _ in range(8)]
        assert sorted(await asyncio.gather(*updates)) == list(range(1, 9))
        assert len(await closes(handle)) == 8


async def test_an_update_id_counts_once_however_often_it_is_sent(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        assert await handle.execute_update(Account.deposit, 5, id="once") == 5
        before = await event_names(handle)
        assert await handle.execute_update(Account.deposit, 5, id="once") == 5
        assert await event_names(handle) == before

        first = await start_transfer(handle, "Ada")
        again = await start_transfer(handle, "Ada")
        await handle.signal(Account.approve, "Ada")
        assert await first.result() == await again.result() == "Ada has the money"
        assert (await event_names(handle)).count(ACCEPTED) == 2
        await closes(handle)


async def test_another_client_polls_an_update_by_its_id(stage: Stage, client_elsewhere):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        await start_transfer(handle, "Ada")
        elsewhere = client_elsewhere.get_workflow_handle(handle.id)
        result = asyncio.create_task(elsewhere.get_update_handle("Ada").result())
        await handle.signal(Account.approve, "Ada")
        assert await result == "Ada has the money"
        again = elsewhere.get_update_handle("Ada", workflow_run_id=handle.result_run_id)
        assert await again.result() == "Ada has the money"
        await closes(handle)


async def test_polling_an_unknown_update_is_refused_as_not_found(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        with pytest.raises(RPCError, match='update "nobody" not found') as refused:
            await handle.get_update_handle("nobody").result()
        assert refused.value.status == RPCStatusCode.NOT_FOUND
        await closes(handle)


async def test_a_handler_knows_which_update_it_serves(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        asked = [handle.execute_update(Account.who_asks, id=id) for id in ("a", "b")]
        assert await asyncio.gather(*asked) == [["who_asks", "a"], ["who_asks", "b"]]
        await closes(handle)


async def test_more_updates_than_may_be_in_flight_are_refused_for_now(stage: Stage):
    async with stage.worker(Account):
        handle = await stage.start(Account.run)
        for number in range(10):
            await start_transfer(handle, f"{number}")
        with pytest.raises(RPCError, match="limit") as refused:
            await start_transfer(handle, "one too many")
        assert refused.value.status == RPCStatusCode.RESOURCE_EXHAUSTED
        await handle.signal(Account.approve, "3")
        await handle.get_update_handle("3").result()
        await start_transfer(handle, "the next one")
        await handle.terminate()
