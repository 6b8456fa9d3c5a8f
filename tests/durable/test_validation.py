"""Updates that workflow code judges before they are accepted."""

import pytest
from durable_workflow import workflow
from durable_workflow.errors import UpdateRejected, UpdateValidationFailed


@workflow.defn(name="till")
class Till:
    def __init__(self):
        self.balance = 0

    @workflow.update("pay")
    def pay(self, amount):
        self.balance += amount
        return self.balance

    @pay.validator
    def check_pay(self, amount):
        if amount <= 0:
            raise ValueError("pay something")

    @workflow.update("close")
    def close(self):
        self.balance = -1
        return "closed"

    def run(self, ctx):
        yield ctx.wait_condition(lambda: self.balance < 0, key="closed")
        return "done"


def test_a_validator_lets_pass_and_refuses(perform):
    async def script(stage):
        async with stage.worker(workflows=[Till]) as worker:
            await stage.until(lambda: stage.is_registered(worker))
            handle = await stage.start("till")

            async def send(name, *args):
                return await stage.client.update_workflow(
                    handle.workflow_id, name, args=list(args), wait_for="completed")

            assert (await send("pay", 5))["result"] == 5
            with pytest.raises(UpdateRejected, match="pay something"):
                await send("pay", -1)
            assert (await send("pay", 2))["result"] == 7
            assert "UpdateRejected" not in await stage.event_types(handle)
            await send("close")
            assert await stage.result(handle) == "done"

    perform(script, with_worker=False)


def test_without_its_worker_a_judged_update_is_refused(perform):
    async def script(stage):
        async with stage.worker(workflows=[Till]) as worker:
            await stage.until(lambda: stage.is_registered(worker))
            handle = await stage.start("till")
            await stage.client.drain_task_queue_build_id(stage.queue, None)
            with pytest.raises(UpdateValidationFailed, match="no worker"):
                await stage.client.update_workflow(handle.workflow_id, "pay", args=[1])

    perform(script, with_worker=False)
