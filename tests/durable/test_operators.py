"""What operators do with the SDK's client: builds, repairs, the archive."""

import os
import uuid

import pytest
from durable_workflow import Client
from durable_workflow.errors import NamespaceNotFound, ServerError


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
            assert (await client.describe_task_queue(stage.queue)).admission.workflow_tasks.configured_slot_count == 0
            # Another build takes what the drained one does not get.
            await client.promote_task_queue_build_id(stage.queue, "v2")
            handle = await stage.start("greeter", "Ada")
            async with stage.worker(build_id="v2"):
                assert await stage.result(handle) == "hello, Ada"
            assert (await client.resume_task_queue_build_id(stage.queue, "v1")).drain_intent == "active"
            await client.promote_task_queue_build_id(stage.queue, "v1")
            handle = await stage.start("greeter", "Bo")
            assert await stage.result(handle, timeout=60) == "hello, Bo"

    perform(script, with_worker=False)


def test_a_promoted_build_has_the_new_runs(perform):
    async def script(stage):
        client = stage.client
        async with stage.worker(build_id="v1") as old:
            await stage.until(lambda: stage.is_registered(old))
            promoted = await client.promote_task_queue_build_id(stage.queue, "v2")
            assert (promoted.build_id, promoted.new_start_selected) == ("v2", True)
            marked = await stage.start("greeter", "Ada")
            # What comes later and has no marker is done by the worker that the marked run is not for.
            assert (await client.promote_task_queue_build_id(stage.queue, None)).new_start_selected
            assert await stage.run("timid") == "done"
            assert (await client.describe_workflow(marked.workflow_id)).status == "pending"
            async with stage.worker(build_id="v2"):
                assert await stage.result(marked) == "hello, Ada"
            builds = {each.build_id: each for each in (await client.list_task_queue_build_ids(stage.queue)).build_ids}
            assert not builds["v2"].new_start_selected
            assert builds["v2"].promoted_at is not None
            assert builds[None].new_start_selected

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


def test_a_namespace_is_deleted_with_all_that_is_in_it(perform):
    async def script(stage):
        name = f"short-lived-{uuid.uuid4().hex}"
        await stage.client.create_namespace(name, description="for a moment", retention_days=3)
        async with Client(os.environ["DURABLE_URL"], namespace=name) as client:
            for number in range(3):
                await client.start_workflow(
                    workflow_type="greeter", workflow_id=f"{name}-{number}", task_queue="q", input=["Ada"])
            deleted = await stage.client.delete_namespace(name)
            assert (deleted.name, deleted.status, deleted.retention_days) == (name, "deleted", 3)
            assert deleted.deleted == {"workflows": 3, "activities": 0, "schedules": 0, "workers": 0, "drained_builds": 0}
            with pytest.raises(NamespaceNotFound):
                await client.describe_workflow(f"{name}-0")
        assert name not in [each.name for each in (await stage.client.list_namespaces()).namespaces]
        with pytest.raises(NamespaceNotFound):
            await stage.client.delete_namespace(name)
        # The name is free, and nothing of the old one comes back with it.
        await stage.client.create_namespace(name)
        async with Client(os.environ["DURABLE_URL"], namespace=name) as client:
            assert (await client.list_workflows()).executions == []
        await stage.client.delete_namespace(name)

    perform(script, with_worker=False)
