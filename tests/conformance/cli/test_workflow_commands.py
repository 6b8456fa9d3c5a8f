"""`temporal workflow …` against a worker of the Python suite."""

import pytest
from app.activities import greet
from app.activity_workflows import Hello
from app.message_workflows import Inbox, Refuse, Sleep
from support import Stage, until

from temporal_cli import Outcome, attempt, temporal


class Desk:
    """The commands an operator types about one workflow."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    async def start(self, verb: str, workflow_type: str, argument: str | None = None):
        words = ["workflow", verb, "--type", workflow_type]
        words += [
            "--task-queue",
            self.stage.name,
            "--workflow-id",
            self.stage.workflow_id,
        ]
        return await temporal(*words, *(["--input", argument] if argument else []))

    async def do(self, verb: str, *words: str) -> Outcome:
        return await temporal("workflow", verb, "-w", self.stage.workflow_id, *words)

    async def attempt(self, verb: str, *words: str) -> Outcome:
        return await attempt("workflow", verb, "-w", self.stage.workflow_id, *words)

    async def event_types(self) -> list[str]:
        return [event["eventType"] for event in (await self.do("show")).json["events"]]

    async def status(self) -> str:
        return (await self.do("describe")).json["workflowExecutionInfo"]["status"]


@pytest.fixture
def desk(stage: Stage) -> Desk:
    return Desk(stage)


async def test_execute_waits_for_the_result(stage: Stage, desk: Desk):
    async with stage.worker(Hello, activities=[greet]):
        outcome = (await desk.start("execute", "Hello", '"Ada"')).json
    assert outcome["status"] == "COMPLETED"
    assert outcome["result"] == "Hello, Ada!"
    assert outcome["workflowId"] == stage.workflow_id


async def test_start_names_the_run_and_describe_shows_it_waiting(
    stage: Stage, desk: Desk
):
    started = (await desk.start("start", "Inbox")).json
    assert started["workflowId"] == stage.workflow_id
    assert started["type"] == "Inbox"
    assert started["taskQueue"] == stage.name

    description = (await desk.do("describe")).json
    info = description["workflowExecutionInfo"]
    assert info["execution"]["runId"] == started["runId"]
    assert info["type"]["name"] == "Inbox"
    assert info["status"] == "WORKFLOW_EXECUTION_STATUS_RUNNING"
    assert info["historyLength"] == "2"
    assert description["executionConfig"]["taskQueue"]["name"] == stage.name
    assert (
        description["pendingWorkflowTask"]["state"]
        == "PENDING_WORKFLOW_TASK_STATE_SCHEDULED"
    )
    await desk.do("terminate")


async def test_a_second_start_joins_the_run_or_fails_when_asked_to(
    stage: Stage, desk: Desk
):
    first = (await desk.start("start", "Inbox")).json
    assert (await desk.start("start", "Inbox")).json["runId"] == first["runId"]
    words = ["--type", "Inbox", "--task-queue", stage.name, "--fail-existing"]
    refusal = await desk.attempt("start", *words)
    assert refusal.code == 1
    assert "already" in refusal.stderr
    await desk.do("terminate")


async def test_signal_query_and_result_talk_to_a_running_workflow(
    stage: Stage, desk: Desk
):
    async with stage.worker(Inbox):
        await desk.start("start", "Inbox")
        for letter in ("one", "two"):
            await desk.do("signal", "--name", "deliver", "--input", f'"{letter}"')
        assert (await desk.do("query", "--name", "count")).json["queryResult"] == [2]
        await desk.do("signal", "--name", "close")
        outcome = (await desk.do("result")).json
        assert outcome["status"] == "COMPLETED"
        assert outcome["result"] == ["one", "two"]
        letter = await desk.do("query", "--name", "letter", "--input", "1")
        assert letter.json["queryResult"] == ["two"]


async def test_an_unknown_query_fails_with_its_name(stage: Stage, desk: Desk):
    async with stage.worker(Inbox):
        await desk.start("start", "Inbox")
        refusal = await desk.attempt("query", "--name", "weather")
        assert refusal.code == 1
        assert "weather" in refusal.stderr
    await desk.do("terminate")


async def test_show_prints_the_whole_history(stage: Stage, desk: Desk):
    async with stage.worker(Hello, activities=[greet]):
        await desk.start("execute", "Hello", '"Ada"')
    history = (await desk.do("show")).json["events"]
    assert [event["eventId"] for event in history] == [
        str(number) for number in range(1, 12)
    ]
    assert history[0]["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED"
    assert history[-1]["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"


async def test_result_of_a_failed_workflow_shows_its_failure(stage: Stage, desk: Desk):
    async with stage.worker(Refuse):
        await desk.start("start", "Refuse", '"A-17"')
        outcome = await desk.attempt("result")
    assert outcome.code == 1
    assert "order A-17 is out of stock" in outcome.stdout
    assert await desk.status() == "WORKFLOW_EXECUTION_STATUS_FAILED"


async def test_cancel_asks_the_workflow_to_end(stage: Stage, desk: Desk):
    async with stage.worker(Sleep):
        await desk.start("start", "Sleep", "3600")

        async def sleeps() -> bool:
            return "EVENT_TYPE_TIMER_STARTED" in await desk.event_types()

        await until(sleeps)
        await desk.do("cancel")
        assert (await desk.attempt("result")).code == 1
    assert await desk.status() == "WORKFLOW_EXECUTION_STATUS_CANCELED"


async def test_terminate_ends_a_workflow_with_the_operators_reason(desk: Desk):
    await desk.start("start", "Sleep", "3600")
    await desk.do("terminate", "--reason", "spring cleaning")
    assert await desk.status() == "WORKFLOW_EXECUTION_STATUS_TERMINATED"
    close = (await desk.do("show")).json["events"][-1]
    attributes = close["workflowExecutionTerminatedEventAttributes"]
    assert attributes["reason"] == "spring cleaning"


async def test_commands_about_a_closed_or_unknown_workflow_say_so(desk: Desk):
    refusal = await desk.attempt("signal", "--name", "deliver", "--input", '"anyone?"')
    assert refusal.code == 1
    assert "not found" in refusal.stderr
    assert (await desk.attempt("describe")).code == 1

    await desk.start("start", "Inbox")
    await desk.do("terminate")
    refusal = await desk.attempt("signal", "--name", "deliver", "--input", '"too late"')
    assert refusal.code == 1
    assert "already completed" in refusal.stderr


@pytest.mark.parametrize(
    ("words", "letters"),
    [
        (["--event-id", "4"], 2),
        (["--type", "FirstWorkflowTask"], 2),
        (["--type", "LastWorkflowTask"], 2),
        (["--event-id", "4", "--reapply-exclude", "Signal"], 0),
    ],
)
async def test_reset_begins_again_in_a_new_run(
    stage: Stage, desk: Desk, words: list[str], letters: int
):
    async with stage.worker(Inbox):
        started = (await desk.start("start", "Inbox")).json
        for letter in ["one", "two"]:
            await desk.do("signal", "--name", "deliver", "--input", f'"{letter}"')
        assert (await desk.do("query", "--name", "count")).json["queryResult"] == [2]
        reset = (await desk.do("reset", "--reason", "a mistake", *words)).json
        assert reset["runId"] != started["runId"]
        assert (await desk.do("query", "--name", "count")).json["queryResult"] == [
            letters
        ]
        await desk.do("signal", "--name", "close")
        outcome = (await desk.do("result")).json
        assert len(outcome["result"] or []) == letters
    old = (await desk.do("describe", "--run-id", started["runId"])).json
    assert old["workflowExecutionInfo"]["status"] == (
        "WORKFLOW_EXECUTION_STATUS_TERMINATED"
    )
    assert old["workflowExtendedInfo"]["resetRunId"] == reset["runId"]
