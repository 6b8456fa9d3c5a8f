"""Workflows that signal and cancel other workflows."""

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import Replayer

from app.message_workflows import Inbox
from app.neighbour_workflows import CancelNeighbour, WriteToChild, WriteToNeighbour
from support import Stage, event_names, events

LETTERS = ["one", "two", "three"]


async def test_a_parent_signals_its_child(stage: Stage):
    async with stage.worker(WriteToChild, Inbox):
        handle = await stage.start(WriteToChild.run, LETTERS)
        assert await handle.result() == LETTERS
    await Replayer(workflows=[WriteToChild]).replay_workflow(
        await handle.fetch_history()
    )


async def test_a_workflow_signals_its_neighbour(stage: Stage):
    async with stage.worker(WriteToNeighbour, Inbox):
        neighbour = await stage.start(Inbox.run, id=f"{stage.name}-neighbour")
        handle = await stage.start(WriteToNeighbour.run, neighbour.id, LETTERS)
        await handle.result()
        await neighbour.signal(Inbox.close)
        assert await neighbour.result() == LETTERS

    signalled = [
        event.workflow_execution_signaled_event_attributes
        for event in await events(neighbour)
        if event.HasField("workflow_execution_signaled_event_attributes")
    ]
    sender = signalled[0].external_workflow_execution
    assert sender.workflow_id == handle.id
    assert sender.run_id == handle.first_execution_run_id
    history = await event_names(handle)
    assert history.count("EXTERNAL_WORKFLOW_EXECUTION_SIGNALED") == len(LETTERS)
    await Replayer(workflows=[WriteToNeighbour]).replay_workflow(
        await handle.fetch_history()
    )


async def test_a_signal_to_a_workflow_that_is_not_there_fails(stage: Stage):
    async with stage.worker(WriteToNeighbour):
        handle = await stage.start(WriteToNeighbour.run, "nobody", LETTERS)
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == "ExternalWorkflowExecutionNotFound"
    history = await event_names(handle)
    assert history.count("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED") == 1


async def test_a_workflow_cancels_its_neighbour(stage: Stage):
    async with stage.worker(CancelNeighbour, Inbox):
        neighbour = await stage.start(Inbox.run, id=f"{stage.name}-neighbour")
        handle = await stage.start(CancelNeighbour.run, neighbour.id)
        await handle.result()
        with pytest.raises(WorkflowFailureError) as failure:
            await neighbour.result()
    assert isinstance(failure.value.cause, CancelledError)
    status = (await neighbour.describe()).status
    assert status == WorkflowExecutionStatus.CANCELED
    await Replayer(workflows=[CancelNeighbour]).replay_workflow(
        await handle.fetch_history()
    )


async def test_cancelling_a_workflow_that_is_not_there_fails(stage: Stage):
    async with stage.worker(CancelNeighbour):
        handle = await stage.start(CancelNeighbour.run, "nobody")
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == "ExternalWorkflowExecutionNotFound"
    history = await event_names(handle)
    assert "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED" in history
