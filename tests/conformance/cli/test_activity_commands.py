"""`temporal activity …` and what operators do to workflows, against a worker of the Python suite."""

import pytest
from app.message_workflows import Sleep
from app.operated import Crew, Errand
from operator_desk import OperatorDesk
from support import Stage, until, within_bound

from temporal_cli import Outcome, attempt, temporal

HOUR = 3600.0


class Desk:
    """The commands an operator types about the activity of one workflow."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    async def do(self, verb: str, *words: str) -> Outcome:
        names = ["-w", self.stage.workflow_id, "--activity-id", "errand"]
        return await temporal("activity", verb, *names, *words)

    async def pending(self) -> dict:
        words = ["workflow", "describe", "-w", self.stage.workflow_id]
        return (await temporal(*words)).json["pendingActivities"][0]


@pytest.fixture
def desk(stage: Stage) -> Desk:
    return Desk(stage)


async def send(stage: Stage) -> OperatorDesk:
    handle = await stage.start(Errand.run, "stumble", stage.name, HOUR)
    return OperatorDesk(stage.client, handle)


async def test_pause_and_unpause(stage: Stage, desk: Desk):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.stumble]):
        errand = await send(stage)
        await errand.until_state("SCHEDULED", attempt=2)
        await desk.do("pause")
        info = await desk.pending()
        assert info["state"] == "PENDING_ACTIVITY_STATE_PAUSED"
        assert info["pauseInfo"]["manual"]["identity"].startswith("temporal-cli")
        crew.may_succeed.set()
        await desk.do("unpause")
        assert await within_bound(errand.handle.result()) == 2


async def test_reset(stage: Stage, desk: Desk):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.stumble]):
        errand = await send(stage)
        await errand.until_state("SCHEDULED", attempt=2)
        crew.may_succeed.set()
        await desk.do("reset")
        assert await within_bound(errand.handle.result()) == 1


async def test_update_options(stage: Stage, desk: Desk):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.stumble]):
        errand = await send(stage)
        await errand.until_state("SCHEDULED", attempt=2)
        crew.may_succeed.set()
        words = ["--start-to-close-timeout", "30s", "--retry-maximum-attempts", "9"]
        await desk.do("update-options", *words)
        options = (await desk.pending())["activityOptions"]
        assert options["startToCloseTimeout"] == "30s"
        assert options["retryPolicy"]["maximumAttempts"] == 9
        await desk.do("update-options", "--retry-initial-interval", "1ms")
        assert await within_bound(errand.handle.result()) == 2


async def test_an_unknown_activity_is_named_as_such(stage: Stage, desk: Desk):
    await send(stage)
    names = ["-w", stage.workflow_id, "--activity-id", "nobody"]
    refusal = await attempt("activity", "pause", *names)
    assert refusal.code == 1
    assert "Can't find pending activity" in refusal.stderr
    await temporal("workflow", "terminate", "-w", stage.workflow_id)


async def test_delete_removes_a_running_workflow(stage: Stage):
    await stage.start(Sleep.run, 3600.0)
    words = ["-w", stage.workflow_id]
    await temporal("workflow", "delete", *words)

    async def is_gone() -> bool:
        described = await attempt("workflow", "describe", *words)
        return described.code == 1 and "not found" in described.stderr

    await until(is_gone)


async def test_an_override_that_is_not_there_can_be_taken_away(stage: Stage):
    await stage.start(Sleep.run, 3600.0)
    words = ["-w", stage.workflow_id]
    flag = ["--versioning-override-behavior", "unspecified"]
    await temporal("workflow", "update-options", *words, *flag)
    await temporal("workflow", "terminate", *words)
