"""What operators and tools do with the SDK's client, beside running workflows."""

import uuid

import pytest
from durable_workflow import Replayer
from durable_workflow.errors import ServerError
from durable_workflow.history_bundle_verify import verify_bundle

import app


def test_search_attributes_are_defined_listed_and_removed(perform):
    async def script(stage):
        name = f"tenant_{uuid.uuid4().hex}"
        made = await stage.client.create_search_attribute(name, "keyword")
        assert made["outcome"] == "created"
        listed = await stage.client.list_search_attributes()
        assert listed.custom_attributes[name] == "keyword"
        assert listed.system_attributes["WorkflowType"] == "keyword"
        with pytest.raises(ServerError, match="attribute_already_exists"):
            await stage.client.create_search_attribute(name, "text")
        assert (await stage.client.delete_search_attribute(name))["outcome"] == "deleted"
        assert name not in (await stage.client.list_search_attributes()).custom_attributes

    perform(script, with_worker=False)


def test_an_exported_history_is_whole_and_can_be_replayed(perform):
    async def script(stage):
        handle = await stage.start(
            "bookkeeper", memo={"from": "start"}, search_attributes={"price": 1.5, "city": "K\u00f6ln \U0001f600"})
        await stage.result(handle)
        bundle = await stage.client.export_history(handle.workflow_id, handle.run_id)
        report = verify_bundle(bundle)
        assert report["status"] == "ok", report["findings"]
        assert report["integrity"]["checksum_matches"] is True
        types = await stage.event_types(handle)
        assert [event["type"] for event in bundle["history_events"]] == types
        Replayer(workflows=app.WORKFLOWS).replay(bundle)

    perform(script)


def test_a_queue_names_the_task_that_has_waited_longest(perform):
    async def script(stage):
        first = await stage.start("greeter", "ada")
        await stage.start("greeter", "bo")
        queue = await stage.client._request("GET", f"/task-queues/{stage.queue}")
        oldest = queue["stats"]["oldest_ready_task"]
        assert (oldest["workflow_id"], oldest["run_id"], oldest["task_type"]) == (
            first.workflow_id, first.run_id, "workflow")

    perform(script, with_worker=False)
