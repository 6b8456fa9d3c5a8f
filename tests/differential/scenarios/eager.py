"""Tasks that are given with the answer to whoever makes them."""

from __future__ import annotations

from google.protobuf.message import Message
from payload import complete_workflow, schedule_activity, seconds
from registry import scenario
from world import World


def start_eagerly(world: World, name: str = "workflow", **fields) -> Message:
    return world.call("StartWorkflowExecution", **world.start_fields(name, request_eager_execution=True, **fields))


@scenario
def eager_start(world: World) -> None:
    started = start_eagerly(world)
    world.complete(started.eager_workflow_task, complete_workflow())


@scenario
def eager_start_is_sent_again(world: World) -> None:
    start_eagerly(world)
    again = start_eagerly(world)
    if again.HasField("eager_workflow_task"):
        world.complete(again.eager_workflow_task, complete_workflow())
    else:
        world.terminate()


@scenario
def eager_start_whose_task_times_out(world: World) -> None:
    start_eagerly(world, workflow_task_timeout=seconds(1))
    world.turn(complete_workflow())


@scenario
def eager_start_that_waits(world: World) -> None:
    start_eagerly(world, workflow_start_delay=seconds(1))
    world.turn(complete_workflow())


@scenario
def eager_start_finds_a_run(world: World) -> None:
    world.start()
    use = {"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING", "request_id": "other"}
    start_eagerly(world, **use)
    world.turn(complete_workflow())


@scenario
def eager_activity(world: World) -> None:
    world.start()
    answered = world.complete(world.poll(), schedule_activity(request_eager_execution=True))
    world.describe()
    for task in answered.activity_tasks:
        world.finish_activity(task)
    world.turn(complete_workflow())


@scenario
def eager_activities_together(world: World) -> None:
    world.start()
    eager, patient = schedule_activity("eager", request_eager_execution=True), schedule_activity("patient")
    answered = world.complete(world.poll(), eager, patient)
    for task in answered.activity_tasks:
        world.finish_activity(task)
    world.finish_activity(world.poll_activity())


@scenario
def eager_activity_with_the_next_task(world: World) -> None:
    world.start()
    eager = schedule_activity(request_eager_execution=True)
    answered = world.complete(world.poll(), eager, return_new_workflow_task=True, force_create_new_workflow_task=True)
    for task in answered.activity_tasks:
        world.finish_activity(task)
    world.complete(answered.workflow_task)
    world.turn(complete_workflow())


@scenario
def eager_activity_of_a_workflow_that_ends(world: World) -> None:
    world.start()
    world.complete(world.poll(), schedule_activity(request_eager_execution=True), complete_workflow())
