"""Events of webhooks, sent by the SDK's own client."""

import uuid

from durable_workflow import Worker, workflow


@workflow.defn(name="bridged")
class Bridged:
    """Waits for a payment, and says with what it began and what it was told."""

    def __init__(self):
        self.paid = []

    @workflow.signal("paid")
    def on_paid(self, what):
        self.paid.append(what)

    def run(self, ctx, order):
        yield ctx.wait_condition(lambda: len(self.paid) > 0, key="paid")
        return [order, self.paid]


def test_events_start_and_signal_a_workflow_once(perform):
    async def script(stage):
        key = uuid.uuid4().hex
        start = {"action": "start_workflow", "idempotency_key": key, "input": {"order": 7},
                 "target": {"workflow_type": "bridged", "task_queue": stage.queue}}
        begun = await stage.client.send_webhook_bridge_event("stripe", **start)
        assert (begun.accepted, begun.outcome, begun.control_plane_outcome) == (True, "accepted", "started_new")
        again = await stage.client.send_webhook_bridge_event("stripe", **start)
        assert (again.accepted, again.outcome, again.run_id) == (False, "duplicate", begun.run_id)
        for what, outcome in [("cash", "accepted"), ("cash", "duplicate"), ("card", "duplicate")]:
            told = await stage.client.send_webhook_bridge_event(
                "shopify", action="signal_workflow", idempotency_key=key, input={"by": what},
                target={"workflow_id": begun.workflow_id, "signal_name": "paid"})
            assert told.outcome == outcome
        worker = Worker(stage.client, task_queue=stage.queue, workflows=[Bridged], activities=[])
        await worker.run_until(workflow_id=begun.workflow_id, timeout=30)
        handle = stage.client.get_workflow_handle(begun.workflow_id, run_id=begun.run_id)
        assert await stage.result(handle) == [{"order": 7}, [{"by": "cash"}]]

    perform(script, with_worker=False)


def test_what_an_event_cannot_do_is_an_outcome_and_no_exception(perform):
    async def script(stage):
        lost = await stage.client.send_webhook_bridge_event(
            "github", action="signal_workflow", idempotency_key="a",
            target={"workflow_id": f"none-{uuid.uuid4().hex}", "signal_name": "paid"})
        assert (lost.outcome, lost.reason) == ("rejected", "unknown_target")
        odd = await stage.client.send_webhook_bridge_event(
            "github", action="dance", idempotency_key="b", target={"workflow_id": "x"})
        assert (odd.outcome, odd.reason, odd.action) == ("rejected", "unsupported_action", "dance")

    perform(script, with_worker=False)
