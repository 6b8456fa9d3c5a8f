"""Schedules with the SDK's client: made, listed, changed, paused, fired by hand and by the clock."""

import asyncio
import uuid
from datetime import datetime, timezone

import pytest
from durable_workflow import Client
from durable_workflow.client import ScheduleAction, ScheduleSpec
from durable_workflow.errors import InvalidArgument, ScheduleAlreadyExists, ScheduleListError, ScheduleNotFound

from conftest import Stage

DAILY = ScheduleSpec(cron_expressions=["0 3 * * *"], timezone="Europe/Berlin")
OFTEN = ScheduleSpec(intervals=[{"every": "PT1S"}])


def new_id() -> str:
    return f"schedule-{uuid.uuid4().hex}"


def greeting(stage: Stage, name: str = "Ada") -> ScheduleAction:
    return ScheduleAction(workflow_type="greeter", task_queue=stage.queue, input=[name])


def waiting(stage: Stage) -> ScheduleAction:
    return ScheduleAction(workflow_type="approval", task_queue=stage.queue, input=[], run_timeout_seconds=300)


async def event_types(handle) -> list[str]:
    return [event.event_type async for event in handle._client.iter_schedule_history(handle.schedule_id, limit=2)]


async def result_of(stage: Stage, workflow_id: str):
    return await stage.result(stage.client.get_workflow_handle(workflow_id, run_id=(
        await stage.client.describe_workflow(workflow_id)).run_id))


def test_a_schedule_is_made_described_and_deleted(perform):
    async def script(stage):
        schedule_id = new_id()
        handle = await stage.client.create_schedule(
            schedule_id=schedule_id, spec=DAILY, action=greeting(stage), overlap_policy="buffer_one", jitter_seconds=30,
            max_runs=5, memo={"team": "ops"}, search_attributes={"tenant": "acme"}, note="by hand")
        shown = await handle.describe()
        assert (shown.schedule_id, shown.status, shown.overlap_policy) == (schedule_id, "active", "buffer_one")
        assert (shown.jitter_seconds, shown.max_runs, shown.remaining_actions) == (30, 5, 5)
        assert (shown.memo, shown.search_attributes, shown.note) == ({"team": "ops"}, {"tenant": "acme"}, "by hand")
        assert shown.spec == DAILY.to_dict()
        assert shown.action["workflow_type"] == "greeter"
        assert (shown.fires_count, shown.failures_count, shown.last_fired_at) == (0, 0, None)
        fires = datetime.fromisoformat(shown.next_fire_at)
        assert fires > datetime.now(timezone.utc)
        with pytest.raises(ScheduleAlreadyExists):
            await stage.client.create_schedule(schedule_id=schedule_id, spec=DAILY, action=greeting(stage))
        await handle.delete()
        with pytest.raises(ScheduleNotFound):
            await handle.describe()
        assert await event_types(handle) == ["ScheduleCreated", "ScheduleDeleted"]
        made = await stage.client.create_schedule(spec=DAILY, action=greeting(stage))
        assert made.schedule_id
        await made.delete()

    perform(script, with_worker=False)


def test_what_is_wrong_with_a_schedule_is_said(perform):
    async def script(stage):
        for spec, field in ((ScheduleSpec(), "spec"),
                            (ScheduleSpec(cron_expressions=["hourly"]), "spec.cron_expressions"),
                            (ScheduleSpec(intervals=[{"every": "PT1H", "offset": "PT2H"}]), "spec.intervals"),
                            (ScheduleSpec(cron_expressions=["* * * * *"], timezone="Atlantis"), "spec.timezone")):
            with pytest.raises(InvalidArgument) as refused:
                await stage.client.create_schedule(spec=spec, action=greeting(stage))
            assert list(refused.value.errors) == [field]
        with pytest.raises(InvalidArgument):
            await stage.client.create_schedule(spec=DAILY, action=greeting(stage), overlap_policy="maybe")

    perform(script, with_worker=False)


def test_schedules_are_listed_in_pages(perform):
    async def script(stage):
        client, mark = stage.client, uuid.uuid4().hex
        handles = [await client.create_schedule(schedule_id=f"{mark}-{i}", spec=DAILY, paused=i == 2,
                                                action=ScheduleAction(workflow_type=f"type-{mark}-{i % 2}"))
                   for i in range(5)]
        page = await client.list_schedules(query=mark, page_size=2)
        found = [each.schedule_id for each in page.schedules]
        while page.next_page_token is not None:
            page = await client.list_schedules(query=mark, page_size=2, next_page_token=page.next_page_token)
            found += [each.schedule_id for each in page.schedules]
        assert found == [f"{mark}-{i}" for i in (4, 3, 2, 1, 0)]
        paused = await client.list_schedules(query=mark, status="paused")
        assert [each.schedule_id for each in paused.schedules] == [f"{mark}-2"]
        assert paused.schedules[0].paused_at is not None
        typed = await client.list_schedules(workflow_type=f"type-{mark}-1")
        assert [each.schedule_id for each in typed.schedules] == [f"{mark}-3", f"{mark}-1"]
        with pytest.raises(ScheduleListError) as refused:
            await client.list_schedules(status="sleeping")
        assert refused.value.field == "status"
        with pytest.raises(ScheduleListError):
            await client.list_schedules(next_page_token="x")
        for handle in handles:
            await handle.delete()

    perform(script, with_worker=False)


def test_a_schedule_fires_and_its_runs_do_their_work(perform):
    async def script(stage):
        handle = await stage.client.create_schedule(
            schedule_id=new_id(), spec=OFTEN, action=greeting(stage), max_runs=2, overlap_policy="allow_all")
        client = stage.client

        async def is_over() -> bool:
            return "ScheduleDeleted" in await event_types(handle)

        await stage.until(is_over)
        history = await client.get_schedule_history(handle.schedule_id)
        fired = [event for event in history.events if event.event_type == "ScheduleTriggered"]
        assert [event.payload["trigger_number"] for event in fired] == [1, 2]
        assert history.events[-1].payload["reason"] == "max_runs_exhausted"
        for event in fired:
            assert event.workflow_instance_id.startswith(f"schedule:{handle.schedule_id}:")
            assert await result_of(stage, event.workflow_instance_id) == "hello, Ada"

    perform(script)


def test_a_schedule_is_changed_in_part(perform):
    async def script(stage):
        handle = await stage.client.create_schedule(schedule_id=new_id(), spec=DAILY, action=greeting(stage, "Ada"))
        await handle.update(note="later", overlap_policy="allow_all")
        before = await handle.describe()
        assert (before.note, before.overlap_policy, before.spec) == ("later", "allow_all", DAILY.to_dict())
        # What an action does not say stays.
        await handle.update(action=ScheduleAction(workflow_type="greeter", run_timeout_seconds=60))
        after = await handle.describe()
        assert after.action == before.action | {"run_timeout_seconds": 60}
        assert (await handle.trigger()).outcome == "triggered"
        page = await stage.client.get_schedule_history(handle.schedule_id)
        updates = [event.payload["changed_fields"] for event in page.events if event.event_type == "ScheduleUpdated"]
        assert updates == [["overlap_policy", "note"], ["action"]]
        await stage.until(lambda: latest_is(stage, handle, "hello, Ada"))
        await handle.delete()

    async def latest_is(stage, handle, expected) -> bool:
        latest = (await handle.describe()).latest_workflow_instance_id
        return latest is not None and await result_of(stage, latest) == expected

    perform(script)


def test_a_paused_schedule_rests(perform):
    async def script(stage):
        handle = await stage.client.create_schedule(schedule_id=new_id(), spec=OFTEN, action=greeting(stage), paused=True)
        assert (await handle.describe()).next_fire_at is None
        skipped = await handle.trigger()
        assert (skipped.outcome, skipped.reason) == ("skipped", "status_not_triggerable")
        await asyncio.sleep(1.5)
        assert (await handle.describe()).fires_count == 0
        await handle.resume(note="go")

        async def has_fired() -> bool:
            return (await handle.describe()).fires_count > 0

        await stage.until(has_fired)
        await handle.pause(note="enough")
        rested = await handle.describe()
        assert (rested.status, rested.note) == ("paused", "enough")
        await asyncio.sleep(1.5)
        assert (await handle.describe()).fires_count == rested.fires_count
        types = await event_types(handle)
        assert types[:4] == ["ScheduleCreated", "SchedulePaused", "ScheduleTriggerSkipped", "ScheduleResumed"]
        await handle.delete()

    perform(script)


def test_overlap_policies(perform):
    async def script(stage):
        client = stage.client
        handle = await client.create_schedule(schedule_id=new_id(), spec=DAILY, action=waiting(stage))
        first = await handle.trigger()
        assert first.outcome == "triggered"
        assert (await handle.trigger()).reason == "overlap_policy_skip"
        buffered = await handle.trigger(overlap_policy="buffer_one")
        assert (buffered.outcome, buffered.buffer_depth) == ("buffered", 1)
        assert (await handle.trigger(overlap_policy="buffer_one")).outcome == "buffer_full"
        assert (await handle.trigger(overlap_policy="buffer_all")).buffer_depth == 2
        assert len((await handle.describe()).info["running_actions"]) == 1

        # What waits begins when nothing runs.
        await client.get_workflow_handle(first.workflow_id).signal("approve", ["ada"])

        async def count(fires: int) -> bool:
            return (await handle.describe()).fires_count == fires

        await stage.until(lambda: count(2))
        assert len((await handle.describe()).info["buffered_actions"]) == 1
        second = (await handle.describe()).latest_workflow_instance_id
        assert second != first.workflow_id

        allowed = await handle.trigger(overlap_policy="allow_all")
        assert allowed.outcome == "triggered"
        cancelling = await handle.trigger(overlap_policy="cancel_other")
        for stopped in (second, allowed.workflow_id):
            await stage.until(lambda stopped=stopped: has_status(client, stopped, "cancelled"))
        terminating = await handle.trigger(overlap_policy="terminate_other")
        await stage.until(lambda: has_status(client, cancelling.workflow_id, "terminated"))
        assert not await has_status(client, terminating.workflow_id, "terminated")
        await client.terminate_workflow(terminating.workflow_id)
        await handle.delete()

    async def has_status(client: Client, workflow_id: str, status: str) -> bool:
        return (await client.describe_workflow(workflow_id)).status == status

    perform(script)


def test_a_backfill_starts_what_was_missed_once(perform):
    async def script(stage):
        handle = await stage.client.create_schedule(
            schedule_id=new_id(), spec=ScheduleSpec(cron_expressions=["0 * * * *"]), action=greeting(stage, "Bo"))
        window = {"start_time": "2026-03-01T10:00:00Z", "end_time": "2026-03-01T13:00:00Z"}
        done = await handle.backfill(**window, overlap_policy="allow_all")
        assert (done.outcome, done.fires_attempted) == ("backfill_started", 3)
        assert [each["fire_time"] for each in done.results] == [f"2026-03-01T{hour}:00:00.000000Z" for hour in (10, 11, 12)]
        for each in done.results:
            assert each["outcome"] == "started"
            assert await result_of(stage, each["workflow_id"]) == "hello, Bo"
        again = await handle.backfill(**window, overlap_policy="allow_all")
        assert {each["reason"] for each in again.results} == {"already_started"}
        with pytest.raises(InvalidArgument):
            await handle.backfill(start_time=window["end_time"], end_time=window["start_time"])
        await handle.delete()

    perform(script)


def test_a_schedule_outlives_kill_9(server):
    async def script():
        async with Client(server.url, namespace="default") as client:
            stage = Stage(client, "crash-schedules")
            async with stage.worker():
                steady = await client.create_schedule(schedule_id="steady", spec=OFTEN, action=greeting(stage))
                resting = await client.create_schedule(schedule_id="resting", spec=OFTEN, action=greeting(stage), paused=True)
                held = await client.create_schedule(schedule_id="held", spec=DAILY, action=waiting(stage))
                first = await held.trigger()
                assert (await held.trigger(overlap_policy="buffer_one")).outcome == "buffered"
                for _ in range(3):
                    before = (await steady.describe()).fires_count
                    server.kill()
                    server.start()

                    async def goes_on(before=before) -> bool:
                        return (await steady.describe()).fires_count > before + 1

                    await stage.until(goes_on, timeout=60)
                await steady.pause()
                assert (await resting.describe()).fires_count == 0
                # What was buffered before the crashes begins after them.
                await client.get_workflow_handle(first.workflow_id).signal("approve", ["ada"])

                async def has_followed() -> bool:
                    return (await held.describe()).fires_count == 2

                await stage.until(has_followed)

                # Each time is there once: as a run, as skipped, or among those that were missed.
                times: list[str] = []
                runs: list[str] = []
                async for event in client.iter_schedule_history("steady"):
                    if event.event_type == "ScheduleTriggered":
                        times.append(event.payload["occurrence_time"])
                        runs.append(event.workflow_instance_id)
                    elif event.event_type == "ScheduleTriggerSkipped":
                        if event.payload["reason"] == "missed":
                            span = [datetime.fromisoformat(event.payload[end]) for end in ("missed_from", "missed_to")]
                            assert (span[1] - span[0]).total_seconds() == event.payload["missed_count"] - 1
                            times += ["missed"] * event.payload["missed_count"]
                        else:
                            times.append(event.payload["occurrence_time"])
                told = [datetime.fromisoformat(time) for time in times if time != "missed"]
                assert len(set(told)) == len(told)
                assert len(times) == (told[-1] - told[0]).total_seconds() + 1
                listed = await client.list_workflows(query="schedule:steady:", page_size=200)
                assert sorted(each.workflow_id for each in listed.executions) == sorted(runs)

    asyncio.run(script())
