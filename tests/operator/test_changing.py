"""What the commands change."""

import pytest
from support import Stage, until
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import TerminatedError

from errand import Bench, Errand
from desk import Desk


def says(why: dict, words: str) -> bool:
    return any(words in sentence for sentence in why["sentences"])


async def test_config_set_takes_what_temporals_takes_and_get_shows_it(desk: Desk):
    limits = ["--queue-rps-limit", "500", "--queue-rps-limit-reason", "overall limit"]
    limits += ["--fairness-key-rps-limit-default", "33.3", "--fairness-key-rps-limit-reason", "per key"]
    weights = ["--fairness-key-weight", "premium=5.0", "--fairness-key-weight", "free=0.5"]
    ours = ["--max-running", "10", "--max-running-per-key", "2", "--fairness", "on", "--first-turn", "prompt"]
    ours += ["--transition", "drain-per-level", "--basis", "in-flight"]
    after = await desk.activities("config", "set", *limits, *weights, *ours)
    assert after == await desk.activities("config", "get")
    assert after["queue_rate"]["per_second"] == 500
    assert after["queue_rate"]["reason"] == "overall limit"
    assert after["queue_rate"]["identity"]
    assert after["key_rate_default"]["per_second"] == 33.3
    assert {key["key"]: key["weight"] for key in after["keys"]} == {"premium": 5, "free": 0.5}
    assert (after["running_max"], after["running_max_per_key"]) == (10, 2)
    assert (after["fairness"], after["first_turn"]) == ("on", "prompt")
    assert (after["transition"], after["basis"]) == ("drain-per-level", "in-flight")

    unset = ["--queue-rps-limit", "default", "--fairness-key-weight-clear-all", "--max-running", "default"]
    after = await desk.activities("config", "set", *unset, "--fairness", "default")
    assert after["queue_rate"]["per_second"] is None
    assert after["key_rate_default"]["per_second"] == 33.3
    assert after["keys"] == []
    assert after["running_max"] is None
    assert after["fairness"] == "default"


async def test_a_weight_acts_on_what_waits_already(desk: Desk):
    for key in ("a", "b", "b"):
        await desk.send(key)
    await desk.workflows("config", "set", "--fairness-key-weight", "a=9")
    keys = {key["key"]: key for key in (await desk.workflows("keys"))["keys"]}
    assert (keys["a"]["weight"], keys["a"]["weight_source"]) == (9, "override")
    assert (keys["b"]["weight"], keys["b"]["weight_source"]) == (1, "task")
    assert keys["a"]["ideal_share"] == pytest.approx(0.9)


async def test_a_paused_key_waits_while_others_go_on(stage: Stage, desk: Desk):
    held = await desk.send("a")
    free = await desk.send("b")
    paused = await desk.workflows("pause", "--key", "a", "--reason", "noisy neighbour")
    assert paused["pause"]["reason"] == "noisy neighbour"
    bench = Bench()
    bench.may_end.set()
    async with stage.worker(Errand, activities=[bench.work]):
        assert await free.result() == "b"
        why = await desk.explain(held)
        assert (why["state"], why["holds"]) == ("waiting", ["paused"])
        assert says(why, ": noisy neighbour.")
        resumed = await desk.workflows("resume", "--key", "a")
        assert resumed["pause"] is None
        assert await held.result() == "a"


async def test_a_paused_queue_gives_nothing_to_a_worker_who_waits(stage: Stage, desk: Desk):
    handle = await desk.send("a")
    await desk.workflows("pause", "--reason", "bad deploy")
    bench = Bench()
    bench.may_end.set()
    async with stage.worker(Errand, activities=[bench.work]):

        async def is_polled() -> bool:
            return (await desk.workflows("describe"))["parked_polls"] > 0

        await until(is_polled)
        described = await desk.workflows("describe")
        assert described["waiting"] == 1
        assert described["config"]["pause"]["reason"] == "bad deploy"
        assert says(await desk.explain(handle), ": bad deploy.")
        await desk.workflows("resume")
        assert await handle.result() == "a"


async def test_a_drained_key_lets_go_what_it_had_and_holds_what_comes(stage: Stage, desk: Desk):
    early = [await desk.send("a"), await desk.send("a")]
    assert (await desk.workflows("drain", "--key", "a"))["is_draining"] is True
    late = await desk.send("a")
    bench = Bench()
    bench.may_end.set()
    async with stage.worker(Errand, activities=[bench.work]):
        for handle in early:
            assert await handle.result() == "a"
        why = await desk.explain(late)
        assert (why["state"], why["holds"]) == ("waiting", ["drained"])
        assert (await desk.workflows("keys"))["keys"][0]["holds"] == ["drained"]
        await desk.workflows("resume", "--key", "a")
        assert await late.result() == "a"


async def test_a_purge_ends_what_waits_of_a_key_and_nothing_else(desk: Desk):
    doomed = [await desk.send("a") for _ in range(3)]
    spared = await desk.send("b")
    purged = await desk.workflows("purge", "--key", "a", "--reason", "tenant left", "--yes")
    assert purged == {"tasks": 3}
    for handle in doomed:
        assert "tenant left" in await termination(handle)
    assert (await desk.explain(spared))["state"] == "waiting"
    assert [key["key"] for key in (await desk.workflows("keys"))["keys"] if key["waiting"]] == ["b"]


async def termination(handle: WorkflowHandle) -> str:
    with pytest.raises(WorkflowFailureError) as failure:
        await handle.result()
    assert isinstance(failure.value.cause, TerminatedError)
    history = await handle.fetch_history()
    return history.events[-1].workflow_execution_terminated_event_attributes.reason


async def test_a_purged_activity_fails_and_is_not_retried(stage: Stage, desk: Desk):
    handle = await desk.send("a")
    async with stage.worker(Errand):

        async def waits() -> bool:
            return (await desk.activities("describe"))["waiting"] == 1

        await until(waits)
        assert await desk.activities("purge", "--key", "a", "--reason", "tenant left", "--yes") == {"tasks": 1}
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert "tenant left" in str(failure.value.cause.cause)


async def test_a_key_runs_no_more_tasks_than_it_may(stage: Stage, desk: Desk):
    await desk.activities("config", "set", "--max-running-per-key", "1")
    bench = Bench()
    first, second = await desk.send("a"), await desk.send("a")
    async with stage.worker(Errand, activities=[bench.work]):

        async def one_runs_and_one_waits() -> bool:
            keys = (await desk.activities("keys"))["keys"]
            return [(key["running"], key["waiting"]) for key in keys] == [(1, 1)]

        await until(one_runs_and_one_waits)
        states = {}
        for handle in (first, second):
            why = await desk.explain(handle, "--activity-id", "work")
            states[why["state"]] = why
        assert states["waiting"]["holds"] == ["capped"]
        assert says(states["waiting"], "Its key has as many tasks running as it may have (1).")
        bench.may_end.set()
        await first.result()
        await second.result()


async def test_a_rate_of_zero_stops_one_key_until_it_is_changed(stage: Stage, desk: Desk):
    stopped = ["config", "set-key", "--key", "a", "--rps-limit", "0"]
    assert (await desk.activities(*stopped))["rate_per_second"] == 0
    bench = Bench()
    bench.may_end.set()
    held, free = await desk.send("a"), await desk.send("b")
    async with stage.worker(Errand, activities=[bench.work]):
        assert await free.result() == "b"

        async def waits() -> bool:
            return (await desk.activities("describe"))["waiting"] == 1

        await until(waits)
        why = await desk.explain(held, "--activity-id", "work")
        assert why["holds"] == ["own-rate"]
        assert says(why, "until its limit is changed (its own limit 0/s).")
        after = await desk.activities("config", "set-key", "--key", "a", "--rps-limit", "default")
        assert after["rate_per_second"] is None
        assert await held.result() == "a"
