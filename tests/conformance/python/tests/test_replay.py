"""Histories that outlive the worker that made them: restarts, patches, replays, great length."""

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from app.activities import greet
from app.activity_workflows import Hello, ManyActivities
from app.message_workflows import Inbox, JourneyAfterPatch, JourneyBeforePatch
from support import Stage, event_names, events, until_event


async def test_a_waiting_workflow_goes_on_under_a_new_worker(stage: Stage):
    async with stage.worker(Inbox):
        handle = await stage.start(Inbox.run)
        await handle.signal(Inbox.deliver, "to the first worker")
        assert await handle.query(Inbox.count) == 1
    async with stage.worker(Inbox):
        await handle.signal(Inbox.deliver, "to the second worker")
        await handle.signal(Inbox.close)
        assert await handle.result() == ["to the first worker", "to the second worker"]


async def test_a_worker_without_a_cache_replays_before_every_task(stage: Stage):
    async with stage.worker(Inbox, max_cached_workflows=0):
        handle = await stage.start(Inbox.run)
        for number in range(3):
            await handle.signal(Inbox.deliver, f"letter {number}")
            assert await handle.query(Inbox.count) == number + 1
        await handle.signal(Inbox.close)
        assert await handle.result() == ["letter 0", "letter 1", "letter 2"]


async def test_a_run_from_before_a_patch_keeps_its_old_code_path(stage: Stage):
    async with stage.worker(JourneyBeforePatch):
        handle = await stage.start(JourneyBeforePatch.run)
        ticket = await handle.query(JourneyBeforePatch.ticket)
    async with stage.worker(JourneyAfterPatch, activities=[greet]):
        await handle.signal(JourneyAfterPatch.go_on)
        assert await handle.result() == f"old road {ticket}"
    assert "MARKER_RECORDED" not in await event_names(handle)


async def test_a_run_from_after_a_patch_records_a_marker_and_takes_the_new_path(
    stage: Stage,
):
    async with stage.worker(JourneyAfterPatch, activities=[greet]):
        handle = await stage.start(JourneyAfterPatch.run)
        await until_event(handle, "MARKER_RECORDED")
        await handle.signal(JourneyAfterPatch.go_on)
        assert await handle.result() == "new road Hello, traveller!"


async def test_a_downloaded_history_replays_without_non_determinism(stage: Stage):
    async with stage.worker(Hello, activities=[greet]):
        handle = await stage.start(Hello.run, "Ada")
        await handle.result()
    downloaded = (await handle.fetch_history()).to_json()
    replay = await Replayer(workflows=[Hello]).replay_workflow(
        WorkflowHistory.from_json(handle.id, downloaded)
    )
    assert replay.replay_failure is None


async def test_a_history_of_a_thousand_events_has_dense_ids_and_replays(stage: Stage):
    async with stage.worker(ManyActivities, activities=[greet]):
        handle = await stage.start(ManyActivities.run, 17, 20)
        assert await handle.result() == 340
    history = await events(handle)
    assert len(history) >= 1000
    assert [event.event_id for event in history] == list(range(1, len(history) + 1))
    await Replayer(workflows=[ManyActivities]).replay_workflow(
        await handle.fetch_history()
    )
