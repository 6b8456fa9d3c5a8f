"""`temporal task-queue …`: limits, who polls, what waits."""

import pytest
from app.activities import greet
from app.activity_workflows import Hello
from app.message_workflows import Inbox
from support import Stage, until

from temporal_cli import Outcome, attempt, temporal


class Counter:
    """The commands an operator types about one task queue."""

    def __init__(self, stage: Stage, queue_type: str) -> None:
        self.words = ["--task-queue", stage.name, "--task-queue-type", queue_type]

    async def set(self, *words: str) -> dict:
        return (await temporal("task-queue", "config", "set", *self.words, *words)).json

    async def refused(self, *words: str) -> str:
        outcome = await attempt("task-queue", "config", "set", *self.words, *words)
        assert outcome.code == 1
        return outcome.stderr

    async def get(self) -> Outcome:
        return await temporal("task-queue", "config", "get", *self.words)

    async def stats(self) -> dict:
        described = await temporal("task-queue", "describe", *self.words)
        (row,) = described.json["stats"]
        return row


@pytest.fixture
def activities(stage: Stage) -> Counter:
    return Counter(stage, "activity")


@pytest.fixture
def workflows(stage: Stage) -> Counter:
    return Counter(stage, "workflow")


LIMITS = [
    *("--queue-rps-limit", "500", "--queue-rps-limit-reason", "overall limit"),
    *("--fairness-key-rps-limit-default", "33.3"),
    *("--fairness-key-rps-limit-reason", "per-key limit"),
]


async def test_a_queue_that_nobody_configured_has_no_configuration(activities: Counter):
    assert (await activities.get()).stdout.strip() == ""


async def test_limits_are_set_with_their_reasons_and_read_back(activities: Counter):
    config = (await activities.set(*LIMITS, "--identity", "ada"))["config"]
    queue, keys = config["queueRateLimit"], config["fairnessKeysRateLimitDefault"]
    assert queue["rateLimit"] == {"requestsPerSecond": 500}
    assert queue["metadata"].pop("updateTime")
    assert queue["metadata"] == {"reason": "overall limit", "updateIdentity": "ada"}
    assert keys["rateLimit"] == {"requestsPerSecond": 33.3}
    assert keys["metadata"]["reason"] == "per-key limit"
    stored = (await activities.get()).json
    assert stored["queueRateLimit"]["rateLimit"] == queue["rateLimit"]
    assert stored["fairnessKeysRateLimitDefault"] == keys


async def test_the_limits_of_one_type_are_not_those_of_another(
    activities: Counter, workflows: Counter
):
    await activities.set(*LIMITS)
    assert (await workflows.get()).stdout.strip() == ""


async def test_default_removes_one_limit_and_remembers_who_did(activities: Counter):
    await activities.set(*LIMITS)
    words = ["--queue-rps-limit", "default", "--queue-rps-limit-reason", "sale is over"]
    config = (await activities.set(*words, "--identity", "bob"))["config"]
    assert "rateLimit" not in config["queueRateLimit"]
    metadata = config["queueRateLimit"]["metadata"]
    assert (metadata["reason"], metadata["updateIdentity"]) == ("sale is over", "bob")
    keys = config["fairnessKeysRateLimitDefault"]
    assert keys["rateLimit"] == {"requestsPerSecond": 33.3}
    assert keys["metadata"]["reason"] == "per-key limit"


async def test_a_limit_of_zero_is_a_limit(activities: Counter):
    await activities.set("--queue-rps-limit", "0")
    stored = (await activities.get()).json
    assert stored["queueRateLimit"]["rateLimit"] == {}


async def test_a_limit_of_zero_stops_a_queue_until_it_is_lifted(
    stage: Stage, activities: Counter
):
    await activities.set("--queue-rps-limit", "0")
    async with stage.worker(
        Hello, activities=[greet], disable_eager_activity_execution=True
    ):
        handle = await stage.start(Hello.run, "Ada")

        # A worker polls all the time, so the task could not wait without the limit.
        async def waits() -> bool:
            return (await activities.stats())["approximateBacklogCount"] == 1

        await until(waits)
        await activities.set("--queue-rps-limit", "default")
        assert await handle.result() == "Hello, Ada!"


async def test_a_workflow_queue_takes_no_limits(workflows: Counter):
    message = "not allowed"
    assert message in await workflows.refused("--queue-rps-limit", "5")
    assert message in await workflows.refused("--fairness-key-rps-limit-default", "5")
    assert (await workflows.get()).stdout.strip() == ""


async def test_a_reason_has_a_limit_of_its_own(activities: Counter):
    refusal = await activities.refused(
        "--queue-rps-limit", "5", "--queue-rps-limit-reason", "r" * 1001
    )
    assert "Reason field too long (max 1000 characters)" in refusal


async def test_the_table_for_people_names_limits_and_reasons(
    stage: Stage, activities: Counter
):
    await activities.set(*LIMITS, "--identity", "ada")
    words = ["task-queue", "config", "get", *activities.words]
    table = (await temporal(*words, output="text")).stdout
    rows = [line.split("  ") for line in table.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    settings = {row[0]: row[1:4] for row in cells if len(row) == 5}
    assert settings["Queue Rate Limit"] == ["500.00 rps", "overall limit", "ada"]
    assert settings["Fairness Key Rate Limit Default"] == [
        *("33.30 rps", "per-key limit", "ada")
    ]


async def test_describe_counts_what_waits(stage: Stage, workflows: Counter):
    assert (await workflows.stats())["approximateBacklogCount"] == 0
    for number in range(3):
        await stage.start(Inbox.run, id=f"{stage.workflow_id}-{number}")

    async def shows_all() -> bool:
        return (await workflows.stats())["approximateBacklogCount"] == 3

    await until(shows_all)
    stats = await workflows.stats()
    assert stats["buildId"] == "UNVERSIONED"
    assert stats["taskQueueType"] == "workflow"
    assert stats["tasksAddRate"] > 0
    assert stats["tasksDispatchRate"] == 0
    for number in range(3):
        handle = stage.client.get_workflow_handle(f"{stage.workflow_id}-{number}")
        await handle.terminate()


async def test_describe_shows_both_types_and_who_polls(stage: Stage):
    options = {"identity": "ada", "max_task_queue_activities_per_second": 7.5}
    async with stage.worker(Hello, activities=[greet], **options):
        assert await stage.execute(Hello.run, "Ada") == "Hello, Ada!"
        described = await temporal("task-queue", "describe", "--task-queue", stage.name)
    stats = {row["taskQueueType"]: row for row in described.json["stats"]}
    assert set(stats) == {"workflow", "activity"}
    assert stats["activity"]["tasksDispatchRate"] > 0
    rates = {
        row["taskQueueType"]: row["ratePerSecond"]
        for row in described.json["pollers"]
        if row["identity"] == "ada"
    }
    assert rates == {"workflow": 100000, "activity": 7.5}


async def test_the_old_describe_shows_pollers_and_configuration(
    stage: Stage, activities: Counter
):
    await activities.set(*LIMITS)
    words = ["--task-queue", stage.name, "--legacy-mode", "--report-config"]
    words += ["--task-queue-type-legacy", "activity"]
    described = (await temporal("task-queue", "describe", *words)).json
    assert described["taskQueues"][0]["rate_per_second"] == 500
    assert described["config"]["queue_rate_limit"]["rate_limit"] == {
        "requests_per_second": 500
    }


async def test_the_queue_itself_is_its_first_partition(stage: Stage):
    words = ["task-queue", "list-partition", "--task-queue", stage.name]
    listed = (await temporal(*words)).json
    assert listed["workflowTaskQueuePartitions"][0]["key"] == stage.name
    assert listed["activityTaskQueuePartitions"][0]["key"] == stage.name
