"""Runs that are asked to stop and may clean up, by workers that can tell their code."""

import asyncio
import contextlib

import pytest
from durable_workflow.errors import WorkflowCancelled

import stops

# A worker that can stop its activities gives each a process of its own, which takes its time: most tests leave them to
# another worker.
ABLE = {"workflows": stops.WORKFLOWS, "activities": [], "capabilities": ["cooperative_cancellation"]}
WORKING = ABLE | {"activities": [stops.clean, stops.endless]}
HANDS = {"workflows": [], "activities": stops.ACTIVITIES}
UNABLE = {"workflows": stops.WORKFLOWS, "activities": stops.ACTIVITIES}
ONCE = ("CooperativeCancellationRequested", "CooperativeCancellationDelivered", "WorkflowCancelled")


def work_with(script, options=ABLE):
    async def run(stage):
        async with contextlib.AsyncExitStack() as workers:
            if not options["activities"]:
                await workers.enter_async_context(stage.worker(**HANDS))
            await workers.enter_async_context(stage.worker(**options))
            await script(stage)

    return run


async def has_event(stage, handle, name, times=1):
    return (await stage.event_types(handle)).count(name) >= times


async def is_cancelled(stage, handle):
    with pytest.raises(WorkflowCancelled):
        await stage.result(handle, timeout=90)
    types = await stage.event_types(handle)
    for name in ONCE:
        assert types.count(name) == 1, types
    assert "WorkflowCompleted" not in types and "WorkflowFailed" not in types
    return types


WAITS = {"timer": "TimerScheduled", "condition": "ConditionWaitOpened", "activity": "ActivityScheduled",
         "parallel": "TimerScheduled", "select": "ConditionWaitOpened", "handle": "SelectionResolved"}


@pytest.mark.parametrize("kind", WAITS)
def test_a_run_cleans_up_wherever_it_waits(perform, kind):
    async def script(stage):
        handle = await stage.start("stoppable", kind)
        times = 2 if kind == "activity" else 1
        await stage.until(lambda: has_event(stage, handle, WAITS[kind], times))
        if kind == "parallel":
            await stage.until(lambda: has_event(stage, handle, "ActivityCompleted", 2))
        before = (await stage.event_types(handle)).count("ActivityCompleted")
        asked = await handle.request_cancellation(reason="enough", cleanup_timeout_seconds=60)
        types = await is_cancelled(stage, handle)
        assert types.count("ActivityCompleted") == before + 3
        again = await handle.request_cancellation()
        assert again["duplicate"] and again["cancellation_request"]["request_id"] == asked[
            "cancellation_request"]["request_id"]
        assert (await handle.describe()).status == "cancelled"

    perform(work_with(script), with_worker=False)


def test_a_run_may_be_asked_before_it_began(perform):
    async def script(stage):
        handle = await stage.start("stoppable", "timer")
        await handle.request_cancellation()
        async with stage.worker(**HANDS), stage.worker(**ABLE):
            await is_cancelled(stage, handle)

    perform(script, with_worker=False)


def test_code_that_lets_it_pass_is_cancelled_too(perform):
    async def script(stage):
        handle = await stage.start("stop-passing")
        await stage.until(lambda: has_event(stage, handle, "TimerScheduled"))
        await handle.request_cancellation()
        await is_cancelled(stage, handle)

    perform(work_with(script), with_worker=False)


def test_what_is_shielded_is_not_disturbed(perform):
    async def script(stage):
        handle = await stage.start("stop-shielded")
        await stage.until(lambda: has_event(stage, handle, "ActivityCompleted"))
        await handle.request_cancellation()
        types = await is_cancelled(stage, handle)
        assert types.count("TimerFired") == 1
        assert types.count("ActivityScheduled") == 2, "nothing is begun twice"

    perform(work_with(script), with_worker=False)


def test_what_comes_before_the_call_is_recorded_first(perform):
    async def script(stage):
        handle = await stage.start("stop-recording")
        await handle.request_cancellation()
        async with stage.worker(**HANDS), stage.worker(**ABLE):
            types = await is_cancelled(stage, handle)
            assert types.count("SideEffectRecorded") == 1
            assert types.index("SideEffectRecorded") < types.index("CooperativeCancellationDelivered")

    perform(script, with_worker=False)


def test_a_local_activity_cleans_up(perform):
    async def script(stage):
        handle = await stage.start("stop-local")
        await stage.until(lambda: has_event(stage, handle, "TimerScheduled"))
        await handle.request_cancellation()
        types = await is_cancelled(stage, handle)
        assert types.count("ActivityCompleted") == 2

    perform(work_with(script, WORKING), with_worker=False)


@pytest.mark.parametrize("policy", ["try_cancel", "wait_cancellation_completed"])
def test_work_is_stopped_and_its_worker_says_so(perform, policy):
    async def script(stage):
        handle = await stage.start("stop-working", policy)
        await stage.until(lambda: has_event(stage, handle, "ActivityScheduled"))
        await asyncio.sleep(1.5)  # its worker has begun it
        await handle.request_cancellation(cleanup_timeout_seconds=60)
        types = await is_cancelled(stage, handle)
        assert types.count("ActivityCancelled") == 1
        if policy == "wait_cancellation_completed":
            assert types.index("ActivityCancellationAcknowledged") < types.index("CooperativeCancellationDelivered")

    perform(work_with(script, WORKING), with_worker=False)


def test_abandoned_work_goes_on_meanwhile(perform):
    async def script(stage):
        handle = await stage.start("stop-working", "abandon")
        await stage.until(lambda: has_event(stage, handle, "ActivityScheduled"))
        await handle.request_cancellation()
        types = await is_cancelled(stage, handle)
        assert "ActivityCancelled" not in types

    perform(work_with(script, WORKING), with_worker=False)


@pytest.mark.parametrize("policy", ["try_cancel", "wait_cancellation_completed"])
def test_a_child_is_asked_as_well(perform, policy):
    async def script(stage):
        handle = await stage.start("stop-family", policy)
        await stage.until(lambda: has_event(stage, handle, "ChildRunStarted"))
        history = await stage.client.get_history(handle.workflow_id, handle.run_id)
        started = next(e["payload"] for e in history["events"] if e["event_type"] == "ChildRunStarted")
        child = stage.client.get_workflow_handle(started["child_workflow_instance_id"],
                                                 run_id=started["child_workflow_run_id"])
        await stage.until(lambda: has_event(stage, child, "TimerScheduled"))
        await handle.request_cancellation(reason="all of you")
        types = await is_cancelled(stage, handle)
        await is_cancelled(stage, child)
        if policy == "wait_cancellation_completed":
            assert types.index("ChildRunCancelled") < types.index("CooperativeCancellationDelivered")
        events = (await stage.client.get_history(child.workflow_id, child.run_id))["events"]
        context = next(e["payload"]["cancellation"] for e in events
                       if e["event_type"] == "CooperativeCancellationRequested")
        assert context["reason"] == "all of you"
        assert [link["workflow_instance_id"] for link in context["lineage"]] == [handle.workflow_id, child.workflow_id]

    perform(work_with(script), with_worker=False)


def test_a_parent_that_ends_asks_its_child(perform):
    async def script(stage):
        handle = await stage.start("stop-leaving")
        assert await stage.result(handle) == "gone"
        history = await stage.client.get_history(handle.workflow_id, handle.run_id)
        started = next(e["payload"] for e in history["events"] if e["event_type"] == "ChildRunStarted")
        child = stage.client.get_workflow_handle(started["child_workflow_instance_id"],
                                                 run_id=started["child_workflow_run_id"])
        await is_cancelled(stage, child)

    perform(work_with(script), with_worker=False)


def test_the_deadline_ends_a_run_that_nobody_can_tell(perform):
    async def script(stage):
        handle = await stage.start("stoppable", "timer")
        await stage.until(lambda: has_event(stage, handle, "TimerScheduled"))
        await handle.request_cancellation(cleanup_timeout_seconds=3)
        with pytest.raises(WorkflowCancelled):
            await stage.result(handle)
        types = await stage.event_types(handle)
        assert "CooperativeCancellationDelivered" not in types
        # Its workers go on with all else.
        assert await stage.run("greeter", "bo") == "hello, bo"

    perform(work_with(script, UNABLE), with_worker=False)


def test_among_workers_the_task_finds_one_that_can(perform):
    async def script(stage):
        async with stage.worker(**UNABLE), stage.worker(**UNABLE):
            handle = await stage.start("stoppable", "timer")
            await stage.until(lambda: has_event(stage, handle, "TimerScheduled"))
            await handle.request_cancellation()
            async with stage.worker(**ABLE):
                await is_cancelled(stage, handle)

    perform(script, with_worker=False)


def test_runs_that_are_not_asked_are_as_before(perform):
    async def script(stage):
        handle = await stage.start("stop-shielded")
        await stage.until(lambda: has_event(stage, handle, "TimerScheduled", 2))
        assert not [each for each in await stage.event_types(handle) if "Cancel" in each]
        assert await stage.run("parent") is not None
        assert await stage.run("race", "ada") == ["hello, ada", "hello, work", [2, 4]]

    perform(work_with(script), with_worker=False)
