"""`temporal workflow update …` and update-with-start against a worker of the Python suite."""

import pytest
from app.update_workflows import Account
from support import Stage

from temporal_cli import Outcome, attempt, temporal


class Counter:
    """The commands a clerk types about one account."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.id = ["--workflow-id", stage.workflow_id]
        self.account = ["--type", "Account", "--task-queue", stage.name, *self.id]

    async def open(self) -> str:
        return (await temporal("workflow", "start", *self.account)).json["runId"]

    async def update(self, verb: str, *words: str) -> Outcome:
        return await temporal("workflow", "update", verb, *self.id, *words)

    async def attempt(self, verb: str, *words: str) -> Outcome:
        return await attempt("workflow", "update", verb, *self.id, *words)

    async def deposit(self, amount: int, *words: str) -> Outcome:
        return await self.attempt(
            "execute", "--name", "deposit", "--input", f"{amount}", *words
        )

    async def start_transfer(self, to: str) -> Outcome:
        words = ["--name", "transfer", "--input", f'"{to}"', "--update-id", to]
        return await self.update("start", *words, "--wait-for-stage", "accepted")

    async def approve(self, to: str) -> None:
        words = ["--name", "approve", "--input", f'"{to}"']
        await temporal("workflow", "signal", *self.id, *words)

    async def with_start(
        self, verb: str, name: str, argument: str, policy: str, *words: str
    ) -> Outcome:
        update = ["--update-name", name, "--update-input", argument]
        words = (*update, "--id-conflict-policy", policy, *words)
        return await attempt("workflow", verb, *self.account, *words)

    async def history(self) -> list[str]:
        events = (await temporal("workflow", "show", *self.id)).json["events"]
        return [event["eventType"].removeprefix("EVENT_TYPE_") for event in events]

    async def close(self) -> None:
        await temporal("workflow", "terminate", *self.id)


@pytest.fixture
def counter(stage: Stage) -> Counter:
    return Counter(stage)


async def test_update_execute_waits_for_the_result(stage: Stage, counter: Counter):
    async with stage.worker(Account):
        await counter.open()
        assert (await counter.deposit(5, "--update-id", "five")).json == {
            "name": "deposit",
            "updateId": "five",
            "result": 5,
        }
        assert (await counter.deposit(5, "--update-id", "five")).json["result"] == 5
        assert (await counter.deposit(7)).json["result"] == 12
        await counter.close()


async def test_update_execute_shows_a_refusal_which_leaves_no_trace(
    stage: Stage, counter: Counter
):
    async with stage.worker(Account):
        await counter.open()
        await counter.deposit(5)
        before = await counter.history()
        refusal = await counter.deposit(-5)
        assert refusal.code == 1
        assert "-5 is not an amount" in refusal.stderr
        assert await counter.history() == before
        await counter.close()


async def test_update_start_describe_and_result_follow_an_update(
    stage: Stage, counter: Counter
):
    async with stage.worker(Account):
        await counter.open()
        started = (await counter.start_transfer("Ada")).json
        assert started == {"name": "transfer", "updateId": "Ada"}
        described = (await counter.update("describe", "--update-id", "Ada")).json
        assert described == {"updateId": "Ada", "stage": "Accepted"}
        await counter.approve("Ada")
        result = (await counter.update("result", "--update-id", "Ada")).json
        assert result == {"updateId": "Ada", "result": "Ada has the money"}
        described = (await counter.update("describe", "--update-id", "Ada")).json
        assert described == {**result, "stage": "Completed"}
        await counter.close()


async def test_update_result_and_describe_show_a_failure(
    stage: Stage, counter: Counter
):
    async with stage.worker(Account):
        await counter.open()
        failed = await counter.attempt(
            "execute", "--name", "withdraw", "--input", "6", "--update-id", "six"
        )
        assert failed.code == 1
        assert "only 0 left" in failed.stderr
        result = await counter.attempt("result", "--update-id", "six")
        assert result.code == 1
        assert "Overdrawn" in result.stdout
        described = (await counter.update("describe", "--update-id", "six")).json
        assert described["stage"] == "Completed"
        assert described["failure"]["message"] == "only 0 left"
        await counter.close()


async def test_an_unfinished_update_of_a_closed_workflow_has_failed(
    stage: Stage, counter: Counter
):
    async with stage.worker(Account):
        await counter.open()
        await counter.start_transfer("Ada")
        await counter.close()
        described = (await counter.update("describe", "--update-id", "Ada")).json
        assert described["stage"] == "Completed"
        info = described["failure"]["FailureInfo"]["ApplicationFailureInfo"]
        assert info["type"] == "AcceptedUpdateCompletedWorkflow"


async def test_updates_that_are_not_there_are_said_to_be_not_found(
    stage: Stage, counter: Counter
):
    unknown = await counter.deposit(5)
    assert unknown.code == 1
    assert "not found" in unknown.stderr
    await counter.open()
    for verb in ("describe", "result"):
        unknown = await counter.attempt(verb, "--update-id", "nobody")
        assert unknown.code == 1
        assert 'update "nobody" not found' in unknown.stderr.replace("\\", "")
    await counter.close()
    closed = await counter.deposit(5)
    assert closed.code == 1
    assert "workflow execution already completed" in closed.stderr


async def test_execute_update_with_start_starts_a_workflow_or_uses_the_one_that_runs(
    stage: Stage, counter: Counter
):
    async with stage.worker(Account):
        words = ("execute-update-with-start", "deposit")
        first = (await counter.with_start(*words, "5", "UseExisting")).json
        assert first["workflowId"] == stage.workflow_id
        assert first["updateResult"] == 5
        second = (await counter.with_start(*words, "7", "UseExisting")).json
        assert second["updateResult"] == 12
        assert second["runId"] == first["runId"]
        await counter.close()


async def test_execute_update_with_start_says_that_a_workflow_runs_already(
    stage: Stage, counter: Counter
):
    async with stage.worker(Account):
        run_id = await counter.open()
        words = ("execute-update-with-start", "deposit", "5", "Fail")
        conflict = await counter.with_start(*words)
        assert conflict.code == 1
        assert "Workflow execution is already running" in conflict.stderr
        assert run_id in conflict.stderr
        await counter.close()


async def test_start_update_with_start_waits_for_acceptance(
    stage: Stage, counter: Counter
):
    async with stage.worker(Account):
        started = await counter.with_start(
            "start-update-with-start",
            "transfer",
            '"Ada"',
            "Fail",
            *("--update-id", "Ada", "--update-wait-for-stage", "accepted"),
        )
        assert started.json["updateId"] == "Ada"
        await counter.approve("Ada")
        result = (await counter.update("result", "--update-id", "Ada")).json
        assert result["result"] == "Ada has the money"
        await counter.close()
