"""An update that starts its workflow if there is none, or finds it running."""

from __future__ import annotations

from google.protobuf.message import Message
from payload import complete_workflow, failure, seconds
from registry import scenario_of
from scenarios.updates import STAGE, acceptance, answer, find, rejection, request, response, update
from world import IDENTITY, NAMESPACE, World

scenario = scenario_of("ExecuteMultiOperation")

FAIL = {"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_FAIL"}
USE = {"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"}
TERMINATE = {"workflow_id_conflict_policy": "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"}
REJECT = {"workflow_id_reuse_policy": "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE"}


def start_of(world: World, name: str = "workflow", **fields) -> dict:
    return world.start_fields(name, **({"namespace": NAMESPACE, "identity": IDENTITY} | USE | fields))


def update_of(world: World, update_id: str = "update", stage: str = "COMPLETED", name: str = "workflow", **fields) -> dict:
    return {
        "namespace": NAMESPACE,
        "workflow_execution": world.execution(name),
        "request": request(update_id),
        "wait_policy": {"lifecycle_stage": f"{STAGE}{stage}"},
    } | fields


def send(world: World, start: dict, asked: dict, **fields):
    operations = [{"start_workflow": start}, {"update_workflow": asked}]
    return world.later("ExecuteMultiOperation", 30, operations=operations, **fields)


def end(world: World) -> None:
    world.signal("end")
    world.turn(complete_workflow())


@scenario
def update_starts_a_workflow(world: World) -> None:
    waiting = send(world, start_of(world), update_of(world))
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    find(world)
    end(world)


@scenario
def update_starts_a_workflow_and_is_accepted(world: World) -> None:
    waiting = send(world, start_of(world), update_of(world, stage="ACCEPTED"))
    task = world.poll()
    answer(world, task, acceptance(task))
    waiting.answer()
    world.signal("go")
    answer(world, world.poll(), response(), then=(complete_workflow(),))
    find(world)


@scenario
def update_starts_a_workflow_and_is_rejected(world: World) -> None:
    waiting = send(world, start_of(world), update_of(world))
    task = world.poll()
    world.complete(task, messages=[rejection(task)])
    waiting.answer()
    end(world)


@scenario
def update_starts_a_workflow_that_ends_at_once(world: World) -> None:
    waiting = send(world, start_of(world), update_of(world))
    task = world.poll()
    answer(world, task, acceptance(task), response(), then=(complete_workflow(),))
    waiting.answer()
    # The same once more: a client that did not hear the answer.
    send(world, start_of(world), update_of(world)).answer()


@scenario
def update_with_start_finds_a_run(world: World) -> None:
    world.start()
    world.turn()
    waiting = send(world, start_of(world, request_id="other"), update_of(world))
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    end(world)


@scenario
def update_with_start_is_refused_by_a_run(world: World) -> None:
    world.start()
    world.turn()
    send(world, start_of(world, **FAIL, request_id="other"), update_of(world)).answer()
    end(world)
    send(world, start_of(world, **REJECT, request_id="third"), update_of(world)).answer()


@scenario
def update_with_start_terminates_a_run(world: World) -> None:
    world.start()
    world.turn()
    waiting = send(world, start_of(world, **TERMINATE, request_id="other"), update_of(world))
    task = world.poll()
    answer(world, task, acceptance(task), response(), then=(complete_workflow(),))
    waiting.answer()


@scenario
def update_with_start_after_the_end(world: World) -> None:
    world.start()
    world.turn(complete_workflow())
    waiting = send(world, start_of(world, request_id="other"), update_of(world))
    task = world.poll()
    answer(world, task, acceptance(task), response(), then=(complete_workflow(),))
    waiting.answer()


@scenario
def update_with_start_is_sent_twice(world: World) -> None:
    waiting = send(world, start_of(world), update_of(world))
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    send(world, start_of(world), update_of(world)).answer()
    # Another request that asks for an update that is done.
    send(world, start_of(world, request_id="other"), update_of(world)).answer()
    update(world).answer()
    end(world)


@scenario
def update_fails_in_a_workflow_it_starts(world: World) -> None:
    waiting = send(world, start_of(world), update_of(world))
    task = world.poll()
    answer(world, task, acceptance(task), response(failure=failure("broken")))
    waiting.answer()
    end(world)


@scenario
def update_with_start_and_the_workflow_is_not_interested(world: World) -> None:
    waiting = send(world, start_of(world), update_of(world))
    world.turn(complete_workflow())
    waiting.answer()


def refuse(world: World, *operations: dict, **fields) -> Message:
    return world.attempt("ExecuteMultiOperation", operations=operations, **fields)


@scenario
def bad_updates_with_start(world: World) -> None:
    start, asked = {"start_workflow": start_of(world)}, {"update_workflow": update_of(world)}
    refuse(world)
    refuse(world, start)
    refuse(world, asked)
    refuse(world, asked, start)
    refuse(world, start, start)
    refuse(world, {}, asked)
    refuse(world, start, {})
    refuse(world, start, asked, namespace="nowhere")
    refuse(world, start, asked, namespace="")
    bad_starts = [
        start_of(world, "another"),
        start_of(world, workflow_type={"name": ""}),
        start_of(world, task_queue={"name": ""}),
        start_of(world, cron_schedule="* * * * *"),
        start_of(world, request_eager_execution=True),
        start_of(world, workflow_start_delay=seconds(1)),
        start_of(world, namespace="nowhere"),
    ]
    for bad in bad_starts:
        refuse(world, {"start_workflow": bad}, asked)
    bad_updates = [
        update_of(world, workflow_execution=world.execution(run_id="11111111-2222-3333-4444-555555555555")),
        update_of(world, first_execution_run_id="11111111-2222-3333-4444-555555555555"),
        update_of(world, request={}),
        update_of(world, request=request(input={"name": ""})),
        update_of(world, stage="ADMITTED"),
        update_of(world, namespace="nowhere"),
    ]
    for bad in bad_updates:
        refuse(world, start, {"update_workflow": bad})
