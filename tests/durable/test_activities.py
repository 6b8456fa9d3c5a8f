"""Activities: those without a workflow, and what keeps an attempt its worker's."""

import uuid

import pytest
from durable_workflow import Client, activity
from durable_workflow.errors import QueryFailed, SignalFailed, WorkflowAlreadyStarted, WorkflowCancelled, WorkflowFailed


def test_an_activity_runs_without_a_workflow(perform):
    async def script(stage):
        handle = await stage.client.start_activity(activity_type="greet", task_queue=stage.queue, input=["Ada"])
        assert await handle.result(poll_interval=0.05) == "hello, Ada"
        seen = await handle.describe()
        assert (seen.status, seen.activity_status, seen.attempt_count) == ("completed", "completed", 1)
        assert (seen.activity_type, seen.task_queue, seen.namespace) == ("greet", stage.queue, "default")
        assert seen.activity_execution_id == handle.activity_execution_id
        assert seen.workflow_run_id == handle.workflow_run_id

    perform(script)


def test_an_activity_without_a_workflow_is_tried_again(perform):
    async def script(stage):
        key = uuid.uuid4().hex
        handle = await stage.client.start_activity(activity_type="flaky", task_queue=stage.queue, input=[key, 2],
            retry_policy={"max_attempts": 3, "backoff_seconds": [0]})
        assert await handle.result(poll_interval=0.05) == 3
        assert (await handle.describe()).attempt_count == 3

    perform(script)


def test_an_activity_without_a_workflow_can_fail(perform):
    async def script(stage):
        handle = await stage.client.start_activity(activity_type="break", task_queue=stage.queue, input=["no"])
        with pytest.raises(WorkflowFailed):
            await handle.result(poll_interval=0.05)

    perform(script)


def test_an_activity_without_a_workflow_can_be_cancelled_and_listed(perform):
    async def script(stage):
        name = f"job-{uuid.uuid4().hex}"
        handle = await stage.client.start_activity(
            activity_type="greet", task_queue=stage.queue, activity_id=name, business_key="mine")
        with pytest.raises(WorkflowAlreadyStarted):
            await stage.client.start_activity(activity_type="greet", task_queue=stage.queue, activity_id=name)
        listed = await stage.client.list_activities(status="running")
        assert [each.business_key for each in listed.activities if each.activity_id == name] == ["mine"]
        with pytest.raises(SignalFailed):
            await stage.client.signal_workflow(name, "stop")
        with pytest.raises(QueryFailed):
            await stage.client.query_workflow(name, "status")
        await handle.cancel(reason="not needed")
        with pytest.raises(WorkflowCancelled):
            await handle.result(poll_interval=0.05)

    perform(script, with_worker=False)


@activity.defn(name="until_told")
async def until_told() -> str:
    """Works until somebody wants it to stop."""
    context = activity.context()
    while True:
        await context.heartbeat({})


def test_the_sdk_keeps_an_activity_by_renewing_its_lease(perform):
    """The worker renews before it begins: without that answer it would abandon the attempt."""
    async def script(stage):
        async with stage.worker(activities=[until_told]) as worker:
            calls = []
            renew = stage.client.renew_activity_task_lease

            async def spy(**options):
                calls.append(await renew(**options))
                return calls[-1]

            stage.client.renew_activity_task_lease = spy
            handle = await stage.client.start_activity(
                activity_type="until_told", task_queue=stage.queue, heartbeat_timeout_seconds=30)

            async def beats():
                return bool(calls) and (await handle.describe()).last_heartbeat_at is not None

            await stage.until(beats)
            assert calls[0]["lease_renewed"] is True
            status = await stage.client.activity_task_status(
                task_id=calls[0]["task_id"], activity_attempt_id=calls[0]["activity_attempt_id"],
                lease_owner=worker.worker_id)
            assert status["can_continue"] is True and status["lease_expires_at"] >= calls[0]["lease_expires_at"]
            # The heartbeats tell the activity that nobody wants it any more, so that the worker can stop.
            await handle.cancel()

    perform(script, with_worker=False)


def test_the_sdk_asks_whether_a_query_is_still_its_own(perform, monkeypatch):
    asked = []
    status = Client.query_task_status

    async def spy(client, **options):
        asked.append(await status(client, **options))
        return asked[-1]

    monkeypatch.setattr(Client, "query_task_status", spy)

    async def script(stage):
        async with stage.worker(require_query_task_authority=True) as worker:
            await stage.until(lambda: stage.is_registered(worker))
            handle = await stage.start("approval")
            answer = await stage.client.query_workflow(handle.workflow_id, "status")
            assert answer["result"] == {"approved_by": None, "notes": []}
            assert asked and all(each["query_task_status"] == "leased" for each in asked)

    perform(script, with_worker=False)
