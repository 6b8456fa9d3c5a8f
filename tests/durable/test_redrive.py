"""Failed runs that go on from the step that failed."""

import uuid

import pytest
from durable_workflow import activity, workflow
from durable_workflow.errors import ServerError, WorkflowFailed

import app


@workflow.defn(name="fragile")
class Fragile:
    """Fails at its second step, or in its group, until the key has failed often enough."""

    def __init__(self):
        self.told = []

    @workflow.signal("tell")
    def tell(self, what):
        self.told.append(what)

    def run(self, ctx, key, where):
        before = ctx.now()
        first = yield ctx.schedule_activity("count-calls", [f"{key}-first"])
        lucky = yield ctx.side_effect(lambda: app.count(f"{key}-effect"))
        if where == "alone":
            second = yield ctx.schedule_activity("flaky", [key, 1])
        else:
            second = yield [ctx.schedule_activity("flaky", [key, 1]), ctx.schedule_activity("double", [4])]
        third = yield ctx.schedule_activity("greet", ["after"])
        assert ctx.now() == before
        return [first, lucky, second, third, self.told]


@activity.defn(name="count-calls")
def count_calls(key: str) -> int:
    return app.count(key)


@workflow.defn(name="caught")
class Caught:
    def run(self, ctx):
        yield ctx.schedule_activity("double", [1])
        raise ValueError("not an activity's fault")


OPTIONS = {"workflows": [*app.WORKFLOWS, Fragile, Caught], "activities": [*app.ACTIVITIES, count_calls]}


def work_with(script):
    async def run(stage):
        async with stage.worker(**OPTIONS):
            await script(stage)

    return run


@pytest.mark.parametrize("where", ["alone", "group"])
def test_a_failed_run_goes_on_from_the_step_that_failed(perform, where):
    async def script(stage):
        key = uuid.uuid4().hex
        handle = await stage.start("fragile", key, where)
        await handle.signal("tell", ["early"])
        with pytest.raises(WorkflowFailed):
            await stage.result(handle)
        answer = await handle.redrive()
        assert answer.outcome == "redriven" and answer.run_id != handle.run_id
        assert (await handle.redrive(request_id="again")).run_id == answer.run_id
        new = stage.client.get_workflow_handle(handle.workflow_id, run_id=answer.run_id)
        first, lucky, second, third, told = await stage.result(new)
        assert (first, lucky, third, told) == (1, 1, "hello, after", ["early"]), "what was done is not done again"
        assert second == (2 if where == "alone" else [2, 8])
        runs = await stage.client.list_workflow_runs(handle.workflow_id)
        assert [run.status for run in runs.runs] == ["failed", "completed"]

    perform(work_with(script), with_worker=False)


def test_a_run_that_did_not_fail_so_is_not_redriven(perform):
    async def script(stage):
        done = await stage.start("greeter", "bo")
        await stage.result(done)
        with pytest.raises(ServerError) as refused:
            await done.redrive()
        assert refused.value.reason() == "run_not_failed"
        caught = await stage.start("caught")
        with pytest.raises(WorkflowFailed):
            await stage.result(caught)
        with pytest.raises(ServerError) as refused:
            await caught.redrive()
        assert refused.value.reason() == "redrive_step_unknown"

    perform(work_with(script), with_worker=False)
