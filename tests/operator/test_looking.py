"""What the commands show."""

import os

import grpc
import pytest
from support import Stage, until

from errand import Bench, Errand
from desk import Desk, fairlead


def by_name(keys: list[dict]) -> dict[str, dict]:
    return {key["key"]: key for key in keys}


async def test_waiting_tasks_are_counted_by_key(desk: Desk):
    for key in ("a", "a", "a", "b", ""):
        await desk.send(key)
    listed = await desk.workflows("keys")
    assert [(key["key"], key["waiting"]) for key in listed["keys"]] == [("a", 3), ("", 1), ("b", 1)]
    assert listed["total"] == 3
    assert by_name(listed["keys"])["a"]["waiting_by_level"] == [0, 0, 3, 0, 0]
    assert by_name(listed["keys"])["b"]["ideal_share"] == pytest.approx(1 / 3)
    named = await desk.workflows("keys", "--key", "b", "--key", "nobody")
    assert [key["key"] for key in named["keys"]] == ["b"]


async def test_keys_by_name_are_listed_once_however_the_pages_fall(desk: Desk):
    for key in ("c", "", "b", "a"):
        await desk.send(key)
    for limit in ("1", "2", "3", "4", "0"):
        listed = await desk.workflows("keys", "--by", "name", "--limit", limit)
        expected = ["", "a", "b", "c"][: int(limit) or None]
        assert [key["key"] for key in listed["keys"]] == expected


async def test_describe_and_list_agree_with_what_waits(stage: Stage, desk: Desk):
    for level in (1, 3, 3, 5):
        await desk.send("a", level)
    described = await desk.workflows("describe")
    assert described["waiting"] == 4
    assert described["keys"] == 1
    assert [level["waiting"] for level in described["levels"]] == [1, 0, 2, 0, 1]
    assert described["is_fair"] is True
    assert described["last_poll_age"] is None
    listed = (await desk.json("list"))["task_queues"]
    ours = [entry for entry in listed if entry["task_queue"]["name"] == stage.name]
    assert [(entry["task_queue"]["type"], entry["waiting"]) for entry in ours] == [("workflow", 4)]


async def test_explain_names_place_and_neighbours_of_a_waiting_task(stage: Stage, desk: Desk):
    await desk.send("a")
    await desk.send("a")
    last = await desk.send("a")
    why = await desk.explain(last)
    assert why["state"] == "waiting"
    assert why["task_queue"] == {"namespace": "default", "name": stage.name, "type": "workflow"}
    assert (why["level"], why["key"], why["tasks_before"]) == (3, "a", 2)
    sentences = (await desk.text("explain", "--workflow-id", last.id)).splitlines()
    assert sentences[0].startswith(
        f"The workflow task of workflow {last.id} waits in queue {stage.name} (workflow), level 3, key a, since "
    )
    assert "2 tasks of its key are before it." in sentences
    assert sentences[-1] == "No worker has polled here since the server started."


async def test_explain_follows_an_activity_from_queue_to_end(stage: Stage, desk: Desk):
    bench = Bench()
    handle = await desk.send("a")

    async def state() -> str:
        return (await desk.explain(handle, "--activity-id", "work"))["state"]

    async with stage.worker(Errand):

        async def waits() -> bool:
            outcome = await fairlead("explain", "--workflow-id", handle.id, "--activity-id", "work", "--json")
            return outcome.code == 0 and '"state": "waiting"' in outcome.stdout

        await until(waits)
        async with stage.worker(activities=[bench.work], identity="the-bench"):

            async def runs() -> bool:
                return await state() == "running"

            await until(runs)
            why = await desk.explain(handle, "--activity-id", "work")
            assert why["worker_identity"] == "the-bench"
            assert "the-bench" in why["sentences"][0]
            bench.may_end.set()
            assert await handle.result() == "a"
    why = await desk.explain(handle)
    assert why["state"] == "nothing-to-do"


async def test_a_running_task_counts_for_its_key(stage: Stage, desk: Desk):
    bench = Bench()
    handle = await desk.send("a")
    async with stage.worker(Errand, activities=[bench.work]):

        async def runs() -> bool:
            return bench.begun == ["a"]

        await until(runs)
        key = (await desk.activities("keys"))["keys"][0]
        assert (key["key"], key["waiting"], key["running"]) == ("a", 0, 1)
        described = await desk.activities("describe")
        assert described["running"] == 1
        assert described["pollers"][0]["identity"]
        bench.may_end.set()
        await handle.result()


async def test_refusals_and_mistakes_have_their_own_exit_codes(desk: Desk):
    refused = await fairlead("list", "--namespace", "nobody-made")
    assert refused.code == 1
    assert refused.stderr == "fairlead: NOT_FOUND: Namespace nobody-made is not found.\n"
    unknown = await fairlead("explain", "--workflow-id", "nobody-started")
    assert unknown.code == 1
    assert unknown.stderr.startswith("fairlead: NOT_FOUND: ")
    limited = await fairlead(*desk.about("workflow", "config", "set", "--queue-rps-limit", "5"))
    assert limited.code == 1
    assert "INVALID_ARGUMENT" in limited.stderr
    assert (await fairlead("keys", "--task-queue", "q")).code == 2
    assert (await fairlead(*desk.about("activity", "config", "set"))).code == 2
    assert (await fairlead("--help")).code == 0


async def test_reflection_lists_the_service():
    async with grpc.aio.insecure_channel(os.environ["FAIRLEAD_ADDRESS"]) as channel:
        ask = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        list_services = b"\x3a\x00"
        describe = b"\x22\x1c" + b"fairlead.v1.TaskQueueService"
        answers = [answer async for answer in ask(iter([list_services, describe]))]
    assert b"fairlead.v1.TaskQueueService" in answers[0]
    assert b"ListTaskQueuesRequest" in answers[1]
