"""What operators do with the SDK's client: builds, repairs, the archive."""

import pytest
from durable_workflow.errors import ServerError


def test_a_build_is_drained_and_resumed(perform):
    async def script(stage):
        client = stage.client
        async with stage.worker(build_id="v1") as worker:
            await stage.until(lambda: stage.is_registered(worker))
            listed = await client.list_task_queue_build_ids(stage.queue)
            assert [(each.build_id, each.rollout_status) for each in listed.build_ids] == [("v1", "active")]
            drained = await client.drain_task_queue_build_id(stage.queue, "v1")
            assert (drained.drain_intent, drained.build_id) == ("draining", "v1")
            assert (await client.drain_task_queue_build_id(stage.queue, "v1")).drained_at == drained.drained_at
            (build,) = (await client.list_task_queue_build_ids(stage.queue)).build_ids
            assert (build.rollout_status, build.draining_worker_count) == ("draining", 1)
            handle = await stage.start("greeter", "Ada")
            assert (await client.describe_task_queue(stage.queue)).admission.workflow_tasks.configured_slot_count == 0
            # Another build takes what the drained one does not get.
            async with stage.worker(build_id="v2"):
                assert await stage.result(handle) == "hello, Ada"
            assert (await client.resume_task_queue_build_id(stage.queue, "v1")).drain_intent == "active"
            handle = await stage.start("greeter", "Bo")
            assert await stage.result(handle, timeout=60) == "hello, Bo"

    perform(script, with_worker=False)


def test_a_pass_finds_nothing_to_do(perform):
    async def script(stage):
        client = stage.client
        assert (await client.repair_status())["candidates"]["missing_tasks"] == 0
        assert (await client.repair_pass(run_ids=["none"]))["repaired_count"] == 0
        assert (await client.retention_status())["expired_run_ids"] == []
        assert (await client.retention_pass(limit=3))["processed"] == 0
        assert (await client.activity_timeout_status())["expired_execution_ids"] == []
        assert (await client.activity_timeout_pass(execution_ids=["none"]))["skipped"] == 1

    perform(script, with_worker=False)


def test_a_closed_workflow_is_archived(perform):
    async def script(stage):
        handle = await stage.start("greeter", "Ada")
        with pytest.raises(ServerError, match="run_not_closed"):
            await stage.client.archive_workflow(handle.workflow_id)
        await stage.client.terminate_workflow(handle.workflow_id)
        assert (await stage.client.archive_workflow(handle.workflow_id, reason="old")).outcome == "archived"
        assert (await stage.client.archive_workflow(handle.workflow_id)).outcome == "archive_not_needed"

    perform(script, with_worker=False)
