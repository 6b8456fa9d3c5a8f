"""Workers that know different workflows and activities, on one queue."""

import uuid

import pytest
from durable_workflow import activity, workflow
from durable_workflow.errors import QueryFailed

served: dict[str, list[str]] = {}


@activity.defn(name="only-here")
def only_here(number: int) -> int:
    return number + 1


@activity.defn(name="only-there")
def only_there(number: int) -> int:
    return number * 10


@workflow.defn(name="travels")
class Travels:
    """Its activities are known to different workers."""

    def run(self, ctx, number):
        for _ in range(3):
            number = yield ctx.schedule_activity("only-here", [number])
            number = yield ctx.schedule_activity("only-there", [number])
        return number


@workflow.defn(name="stays")
class Stays:
    def run(self, ctx, name):
        return f"{name} stays"
        yield


@workflow.defn(name="in-order")
class InOrder:
    """Says whose it is when its turn comes."""

    def run(self, ctx, test, key):
        served.setdefault(test, []).append(key)
        return key
        yield


def travelled(number: int) -> int:
    for _ in range(3):
        number = (number + 1) * 10
    return number


def test_workers_with_different_types_share_a_queue(perform):
    async def script(stage):
        here = {"workflows": [Travels], "activities": [only_here]}
        there = {"workflows": [Stays], "activities": [only_there]}
        async with stage.worker(**here), stage.worker(**there), stage.worker(**there):
            travels = [await stage.start("travels", number) for number in range(10)]
            stays = [await stage.start("stays", str(number)) for number in range(10)]
            for number, handle in enumerate(travels):
                assert await stage.result(handle) == travelled(number)
                assert "ActivityFailed" not in await stage.event_types(handle)
            assert [await stage.result(handle) for handle in stays] == [f"{number} stays" for number in range(10)]

    perform(script, with_worker=False)


def test_what_nobody_knows_waits_for_somebody_who_does(perform):
    async def script(stage):
        async with stage.worker(workflows=[Travels], activities=[only_here]):
            handle = await stage.start("travels", 1)
            lost = await stage.start("stays", "Ada")

            async def is_half_way() -> bool:
                return (await stage.event_types(handle)).count("ActivityScheduled") == 2

            # Others are served meanwhile, and nothing is failed.
            await stage.until(is_half_way)
            assert (await stage.event_types(handle))[-1] == "ActivityScheduled"
            assert (await stage.client.describe_workflow(lost.workflow_id)).status == "pending"
            with pytest.raises(QueryFailed, match="query_worker_unavailable|no worker"):
                await stage.client.query_workflow(lost.workflow_id, "anything")
            async with stage.worker(workflows=[Stays], activities=[only_there]):
                assert await stage.result(lost) == "Ada stays"
                assert await stage.result(handle) == travelled(1)

    perform(script, with_worker=False)


def test_tenants_are_served_fairly_inside_a_type(perform):
    weights = {"a": 5, "b": 3, "c": 2}

    async def script(stage):
        test = uuid.uuid4().hex
        others, own = [], []
        for _ in range(20):
            for key, weight in weights.items():
                tenant = {"fairness_key": key, "fairness_weight": weight}
                others.append(await stage.start("stays", key, **tenant))
                own.append(await stage.start("in-order", test, key, **tenant))
        async with stage.worker(workflows=[Stays], activities=[]):
            for handle in others:
                await stage.result(handle)
            assert (await stage.client.describe_workflow(own[0].workflow_id)).status == "pending"
            async with stage.worker(workflows=[InOrder], activities=[], max_concurrent_workflow_tasks=1):
                for handle in own:
                    await stage.result(handle)
        for count in range(1, 31):
            for key, weight in weights.items():
                had = served[test][:count].count(key)
                assert abs(10 * had - weight * count) <= 10, (key, count, had)

    perform(script, with_worker=False)
