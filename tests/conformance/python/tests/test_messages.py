"""Signals and queries."""

import pytest
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from app.message_workflows import Inbox
from support import Stage, event_names

LETTERS = [f"letter {number}" for number in range(10)]


async def test_signals_arrive_once_each_and_in_order(stage: Stage):
    async with stage.worker(Inbox):
        handle = await stage.start(Inbox.run)
        for letter in LETTERS:
            await handle.signal(Inbox.deliver, letter)
        await handle.signal(Inbox.close)
        assert await handle.result() == LETTERS
    assert (await event_names(handle)).count("WORKFLOW_EXECUTION_SIGNALED") == len(
        LETTERS
    ) + 1


async def test_signals_wait_for_a_worker_that_comes_later(stage: Stage):
    handle = await stage.start(Inbox.run)
    for letter in LETTERS:
        await handle.signal(Inbox.deliver, letter)
    await handle.signal(Inbox.close)
    async with stage.worker(Inbox):
        assert await handle.result() == LETTERS


async def test_signal_with_start_delivers_to_a_new_and_to_a_running_workflow(
    stage: Stage,
):
    first = await stage.start(
        Inbox.run, start_signal="deliver", start_signal_args=["one"]
    )
    second = await stage.start(
        Inbox.run, start_signal="deliver", start_signal_args=["two"]
    )
    assert first.result_run_id == second.result_run_id
    async with stage.worker(Inbox):
        await first.signal(Inbox.close)
        assert await first.result() == ["one", "two"]


async def test_signalling_a_closed_workflow_is_refused_as_not_found(stage: Stage):
    async with stage.worker(Inbox):
        handle = await stage.start(Inbox.run)
        await handle.signal(Inbox.close)
        await handle.result()
    with pytest.raises(RPCError) as refusal:
        await handle.signal(Inbox.deliver, "too late")
    assert refusal.value.status == RPCStatusCode.NOT_FOUND


async def test_signalling_an_unknown_workflow_is_refused_as_not_found(stage: Stage):
    with pytest.raises(RPCError) as refusal:
        await stage.client.get_workflow_handle(stage.workflow_id).signal(
            "deliver", "anyone?"
        )
    assert refusal.value.status == RPCStatusCode.NOT_FOUND


async def test_a_running_workflow_answers_queries_without_new_events(stage: Stage):
    async with stage.worker(Inbox):
        handle = await stage.start(Inbox.run)
        await handle.signal(Inbox.deliver, "one")
        assert await handle.query(Inbox.count) == 1
        before = await event_names(handle)
        assert await handle.query(Inbox.letter, 0) == "one"
        assert await event_names(handle) == before
        await handle.signal(Inbox.close)
        await handle.result()


async def test_a_completed_workflow_still_answers_queries(stage: Stage):
    async with stage.worker(Inbox):
        handle = await stage.start(Inbox.run)
        await handle.signal(Inbox.deliver, "one")
        await handle.signal(Inbox.close)
        await handle.result()
        assert await handle.query(Inbox.count) == 1
    # Another worker has nothing cached and replays the whole history to answer.
    async with stage.worker(Inbox):
        assert await handle.query(Inbox.letter, 0) == "one"


async def test_a_query_that_raises_tells_the_caller_why(stage: Stage):
    async with stage.worker(Inbox):
        handle = await stage.start(Inbox.run)
        with pytest.raises(WorkflowQueryFailedError, match="there is no letter 7"):
            await handle.query(Inbox.letter, 7)
        assert await handle.query(Inbox.count) == 0
        await handle.terminate()


async def test_an_unknown_query_is_refused_by_name(stage: Stage):
    async with stage.worker(Inbox):
        handle = await stage.start(Inbox.run)
        with pytest.raises(WorkflowQueryFailedError, match="weather"):
            await handle.query("weather")
        await handle.terminate()
