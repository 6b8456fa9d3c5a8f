"""Messages of streams that workflow code reads."""

import asyncio

import pytest
from durable_workflow import workflow

import app


@workflow.defn(name="mailbox")
class Mailbox:
    def run(self, ctx, wanted):
        box = ctx.message_stream("orders")
        seen = []
        while len(seen) < wanted:
            for message in (yield from box.receive(10)):
                seen.append([message.message_id, *message.arguments])
            yield ctx.schedule_activity("double", [len(seen)])
        return seen


OPTIONS = {"workflows": [*app.WORKFLOWS, Mailbox], "activities": app.ACTIVITIES}


def work_with(script):
    async def run(stage):
        async with stage.worker(**OPTIONS):
            await script(stage)

    return run


def test_messages_come_in_order_and_once(perform):
    async def script(stage):
        handle = await stage.start("mailbox", 5)
        positions = []
        for number in range(5):
            for _ in range(2):  # sent again
                answer = await stage.client.append_message_stream(
                    handle.workflow_id, "orders", f"m{number}", args=[number])
            positions.append(answer["position"])
            if number == 2:
                await asyncio.sleep(0.3)
        assert positions == sorted(set(positions))
        assert await stage.result(handle) == [[f"m{number}", number] for number in range(5)]
        types = await stage.event_types(handle)
        assert types.count("SignalReceived") == 5

    perform(work_with(script), with_worker=False)


def test_another_message_under_the_same_id_is_refused(perform):
    async def script(stage):
        handle = await stage.start("mailbox", 1)
        await stage.client.append_message_stream(handle.workflow_id, "orders", "m", args=["a"])
        with pytest.raises(Exception) as refused:
            await stage.client.append_message_stream(handle.workflow_id, "orders", "m", args=["b"])
        assert "request_id_conflict" in str(refused.value) or getattr(refused.value, "reason", None) is not None

    perform(script, with_worker=False)
