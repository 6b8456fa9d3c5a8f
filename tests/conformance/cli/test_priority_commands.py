"""`temporal workflow start` with a priority, a fairness key and a weight."""

from app.turns import Turns, VisitOnce
from support import Stage, until
from turn_taking import ONE_BY_ONE

from temporal_cli import temporal


async def start(stage: Stage, workflow_id: str, *words: str) -> None:
    target = ["--task-queue", stage.name, "--workflow-id", workflow_id]
    await temporal("workflow", "start", "--type", "VisitOnce", *target, *words)


async def test_describe_and_show_tell_the_priority_of_a_workflow(stage: Stage):
    fairness = ["--fairness-key", "a-key", "--fairness-weight", "3.14"]
    await start(stage, stage.workflow_id, "--priority-key", "1", *fairness)
    expected = {"priorityKey": 1, "fairnessKey": "a-key", "fairnessWeight": 3.14}
    words = ["--workflow-id", stage.workflow_id]

    description = (await temporal("workflow", "describe", *words)).json
    assert description["workflowExecutionInfo"]["priority"] == expected
    started = (await temporal("workflow", "show", *words)).json["events"][0]
    assert started["workflowExecutionStartedEventAttributes"]["priority"] == expected
    await temporal("workflow", "terminate", *words)


async def test_the_priority_of_a_start_command_decides_who_goes_first(stage: Stage):
    visits = [("batch", "5"), ("ordinary", "3"), ("urgent", "1")]
    for name, key in visits:
        words = ["--input", f'"{name}"', "--priority-key", key]
        await start(stage, f"{stage.workflow_id}-{name}", *words)
    turns = Turns()
    async with stage.worker(VisitOnce, activities=[turns.take_turn], **ONE_BY_ONE):

        async def all_went() -> bool:
            return len(turns.taken) == len(visits)

        await until(all_went)
    assert turns.taken == ["urgent", "ordinary", "batch"]
