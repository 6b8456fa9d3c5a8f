"""What users of the SDK do, each in a few lines."""

import asyncio
import uuid

import pytest
from durable_workflow.errors import (
    QueryFailed,
    UpdateFailed,
    WorkflowAlreadyStarted,
    WorkflowCancelled,
    WorkflowFailed,
    WorkflowNotFound,
    WorkflowTerminated,
)


def test_hello_world(perform):
    async def script(stage):
        assert await stage.run("greeter", "world") == "hello, world"

    perform(script)


def test_history_of_hello_world(perform):
    async def script(stage):
        handle = await stage.start("greeter", "world")
        await stage.result(handle)
        assert await stage.event_types(handle) == [
            "StartAccepted", "WorkflowStarted", "ActivityScheduled", "ActivityStarted", "ActivityCompleted",
            "WorkflowCompleted",
        ]

    perform(script)


def test_signal_query_and_condition(perform):
    async def script(stage):
        handle = await stage.start("approval")
        answer = await handle.query("status")
        assert answer["result"] == {"approved_by": None, "notes": []}
        await handle.signal("note", ["first"])
        await handle.signal("note", ["second"])
        await handle.signal("approve", ["ada"])
        assert await stage.result(handle) == {"greeting": "hello, ada", "notes": ["first", "second"]}
        assert (await handle.query("status"))["result"]["approved_by"] == "ada"

    perform(script)


def test_unknown_query(perform):
    async def script(stage):
        handle = await stage.start("approval")
        with pytest.raises(QueryFailed):
            await handle.query("nonsense")
        await handle.terminate(reason="enough")

    perform(script)


def test_query_without_a_worker(perform):
    async def script(stage):
        handle = await stage.start("approval")
        with pytest.raises(QueryFailed):
            await handle.query("status")

    perform(script, with_worker=False)


def test_wait_times_out_and_sleep(perform):
    async def script(stage):
        handle = await stage.start("impatient", 1)
        assert await stage.result(handle) is False
        types = await stage.event_types(handle)
        assert types.count("TimerFired") == 2
        assert "ConditionWaitOpened" in types

    perform(script)


def test_parallel_activities(perform):
    async def script(stage):
        handle = await stage.start("parallel", [1, 2, 3, 4])
        assert await stage.result(handle) == [2, 4, 6, 8]
        assert (await stage.event_types(handle)).count("ActivityScheduled") == 4

    perform(script)


def test_nested_parallel_with_a_timer(perform):
    async def script(stage):
        handle = await stage.start("nested")
        result = await stage.result(handle)
        assert result[0] == 2
        assert result[1] == [4, 6]
        assert (await stage.event_types(handle)).count("ActivityScheduled") == 3

    perform(script)


def test_parallel_with_a_failing_member(perform):
    async def script(stage):
        handle = await stage.start("parallel-failing")
        assert await stage.result(handle) == "caught ActivityFailed"
        assert (await stage.event_types(handle)).count("ActivityScheduled") == 2, "the group is scheduled once"

    perform(script)


def test_children_alone_and_in_parallel(perform):
    async def script(stage):
        assert await stage.run("parent") == ["HELLO, ADA", "HELLO, BO", "HELLO, CY", "ChildWorkflowFailed"]

    perform(script)


def test_side_effect_version_patch_attributes_memo(perform):
    async def script(stage):
        handle = await stage.start("bookkeeper", memo={"from": "start"}, search_attributes={"region": "eu"})
        assert await stage.result(handle) == [42, 3, True, "hello, books"]
        about = await handle.describe()
        assert about.memo == {"from": "start", "note": "kept", "depth": {"x": [1, 2]}}
        assert about.search_attributes == {"region": "eu", "tenant": "acme", "rank": 3, "tags": ["a", "b"]}

    perform(script)


def test_activity_is_retried(perform):
    async def script(stage):
        assert await stage.run("retrier", uuid.uuid4().hex, 2, 3) == 3

    perform(script)


def test_activity_fails_for_good(perform):
    async def script(stage):
        assert "for good" in await stage.run("breaker")

    perform(script)


def test_activity_runs_out_of_attempts(perform):
    async def script(stage):
        with pytest.raises(WorkflowFailed, match="attempt 2"):
            await stage.run("retrier", uuid.uuid4().hex, 5, 2)

    perform(script)


def test_activity_heartbeats(perform):
    async def script(stage):
        assert await stage.run("heart") == 3

    perform(script)


def test_activity_times_out(perform):
    async def script(stage):
        handle = await stage.start("late")
        await stage.result(handle)
        assert "ActivityTimedOut" in await stage.event_types(handle)

    perform(script)


def test_continue_as_new(perform):
    async def script(stage):
        handle = await stage.start("counter", 2)
        assert await stage.result(handle) is None, "the first run has no result of its own"
        last = stage.client.get_workflow_handle(handle.workflow_id)
        for _ in range(100):
            about = await last.describe()
            if about.run_id != handle.run_id and about.status == "completed" and about.output == "done":
                break
            await asyncio.sleep(0.1)
        runs = await handle.list_runs()
        assert [run.run_number for run in runs.runs] == [1, 2, 3]
        assert about.output == "done"

    perform(script)


def test_workflow_fails(perform):
    async def script(stage):
        with pytest.raises(WorkflowFailed, match="on purpose"):
            await stage.run("failing")

    perform(script)


def test_updates(perform):
    async def script(stage):
        handle = await stage.start("account")
        assert (await handle.update("deposit", [5], wait_for="completed"))["result"] == 5
        assert (await handle.update("deposit", [7], wait_for="completed"))["result"] == 12
        with pytest.raises(UpdateFailed, match="not negative"):
            await handle.update("deposit", [-1], wait_for="completed")
        assert (await handle.query("balance"))["result"] == 12
        assert (await handle.update("close", [], wait_for="completed"))["result"] == "closing"
        assert await stage.result(handle) == 12, "the condition is looked at again after the update"

    perform(script)


def test_update_is_accepted_at_once(perform):
    async def script(stage):
        handle = await stage.start("account")
        answer = await handle.update("deposit", [3])
        assert answer["update_status"] in ("accepted", "completed")
        await handle.update("close", [], wait_for="completed")
        assert await stage.result(handle) == 3

    perform(script)


def test_signal_during_an_activity(perform):
    async def script(stage):
        handle = await stage.start("distracted")
        await asyncio.sleep(0.3)
        await handle.signal("tell", ["news"])
        assert await stage.result(handle) == ["news"]

    perform(script)


def test_cancel_and_terminate_close_at_once(perform):
    async def script(stage):
        cancelled = await stage.start("approval")
        await cancelled.cancel(reason="changed my mind")
        with pytest.raises(WorkflowCancelled):
            await stage.result(cancelled)
        terminated = await stage.start("approval")
        await terminated.terminate(reason="enough")
        with pytest.raises(WorkflowTerminated):
            await stage.result(terminated)

    perform(script, with_worker=False)


def test_duplicate_start(perform):
    async def script(stage):
        handle = await stage.start("approval")
        with pytest.raises(WorkflowAlreadyStarted):
            await stage.start("approval", workflow_id=handle.workflow_id)
        same = await stage.start("approval", workflow_id=handle.workflow_id, duplicate_policy="use-existing")
        assert same.run_id == handle.run_id
        await handle.terminate()
        with pytest.raises(WorkflowAlreadyStarted):
            await stage.start("approval", workflow_id=handle.workflow_id)

    perform(script, with_worker=False)


def test_unknown_workflow(perform):
    async def script(stage):
        with pytest.raises(WorkflowNotFound):
            await stage.client.describe_workflow("workflow-that-never-was")

    perform(script, with_worker=False)


def test_local_activity(perform):
    async def script(stage):
        assert await stage.run("local") == ["hello, local", "hello, remote"]

    perform(script)


def test_thirty_steps(perform):
    async def script(stage):
        handle = await stage.start("marathon", 30)
        assert await stage.result(handle, timeout=60) == sum(2 * i for i in range(30))

    perform(script)


def test_a_second_worker_goes_on_where_the_first_stopped(perform):
    async def script(stage):
        async with stage.worker():
            handle = await stage.start("approval")
            assert (await handle.query("status"))["result"]["notes"] == []
        await handle.signal("approve", ["bo"])
        async with stage.worker():
            assert (await stage.result(handle))["greeting"] == "hello, bo"

    perform(script, with_worker=False)
