"""Updates: accepted, rejected, ignored, too late."""

from __future__ import annotations

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message
from payload import command, complete_workflow, continue_as_new, failure, payload, payloads, record_marker, seconds
from registry import scenario_of
from scenarios.workflow_tasks import sticky
from temporalio.api.update.v1 import Acceptance, Rejection, Request, Response
from world import World

scenario = scenario_of("UpdateWorkflowExecution")

STAGE = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_"


def request(update_id: str = "update", **fields) -> dict:
    asked = {"name": "change", "args": payloads("arg"), "header": {"fields": {"trace": payload("t")}}}
    return {"meta": {"update_id": update_id, "identity": "client"}, "input": asked} | fields


def update(world: World, update_id: str = "update", stage: str = "COMPLETED", name: str = "workflow", **fields):
    fields = {"request": request(update_id), "wait_policy": {"lifecycle_stage": f"{STAGE}{stage}"}} | fields
    return world.later("UpdateWorkflowExecution", 30, workflow_execution=world.execution(name), **fields)


def find(world: World, update_id: str = "update", stage: str = "UNSPECIFIED", name: str = "workflow"):
    ref = {"workflow_execution": world.execution(name), "update_id": update_id}
    wait = {"lifecycle_stage": f"{STAGE}{stage}"}
    return world.attempt("PollWorkflowExecutionUpdate", update_ref=ref, wait_policy=wait)


def message(update_id: str, kind: str, body: Message) -> dict:
    packed = Any()
    packed.Pack(body)
    return {"id": f"{update_id}/{kind}", "protocol_instance_id": update_id, "body": packed}


def acceptance(task: Message, update_id: str = "update") -> dict:
    asked = next(it for it in task.messages if it.protocol_instance_id == update_id)
    original = Request()
    asked.body.Unpack(original)
    body = Acceptance(
        accepted_request_message_id=asked.id,
        accepted_request_sequencing_event_id=asked.event_id,
        accepted_request=original,
    )
    return message(update_id, "accept", body)


def response(update_id: str = "update", **outcome) -> dict:
    meta = {"update_id": update_id, "identity": "client"}
    return message(update_id, "complete", Response(meta=meta, outcome=outcome or {"success": payloads("updated")}))


def rejection(task: Message, update_id: str = "update") -> dict:
    asked = next(it for it in task.messages if it.protocol_instance_id == update_id)
    body = Rejection(
        rejected_request_message_id=asked.id,
        rejected_request_sequencing_event_id=asked.event_id,
        failure=failure("no"),
    )
    return message(update_id, "reject", body)


def carry(*messages: dict) -> list:
    """The commands at whose places the messages are handled."""
    return [command("PROTOCOL_MESSAGE", message_id=it["id"]) for it in messages]


def answer(world: World, task: Message, *messages: dict, then: tuple = (), **fields):
    """Completes a task with messages, each at its command, and further commands after them."""
    return world.complete(task, *carry(*messages), *then, messages=messages, **fields)


def idle(world: World, **fields) -> None:
    """A run that waits for something to happen."""
    world.start()
    world.turn(**fields)


def end(world: World) -> None:
    world.signal("end")
    world.turn(complete_workflow())


@scenario
def update_completes(world: World) -> None:
    idle(world)
    waiting = update(world)
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    find(world)
    end(world)
    find(world)


@scenario
def update_fails(world: World) -> None:
    idle(world)
    waiting = update(world)
    task = world.poll()
    answer(world, task, acceptance(task), response(failure=failure("broken")))
    waiting.answer()
    end(world)


@scenario
def update_completes_later(world: World) -> None:
    idle(world)
    waiting = update(world, stage="ACCEPTED")
    task = world.poll()
    answer(world, task, acceptance(task), then=(record_marker(),))
    waiting.answer()
    find(world)
    world.describe()
    world.signal("go")
    answer(world, world.poll(), response())
    find(world, stage="COMPLETED")
    update(world).answer()
    end(world)


@scenario
def update_is_rejected(world: World) -> None:
    idle(world)
    waiting = update(world)
    task = world.poll()
    # Nothing has happened: the task leaves no trace.
    world.complete(task, messages=[rejection(task)])
    waiting.answer()
    find(world)
    world.describe()
    end(world)


@scenario
def update_is_rejected_with_commands(world: World) -> None:
    idle(world)
    waiting = update(world, stage="ACCEPTED")
    task = world.poll()
    world.complete(task, record_marker(), messages=[rejection(task)])
    waiting.answer()
    end(world)


@scenario
def update_is_ignored(world: World) -> None:
    idle(world)
    waiting = update(world)
    world.turn()
    waiting.answer()
    end(world)


@scenario
def update_of_a_sticky_workflow(world: World) -> None:
    idle(world, sticky_attributes=sticky(world))
    polling = world.poll_later(sticky(world)["worker_task_queue"])
    waiting = update(world)
    task = polling.answer()
    world.complete(task, messages=[rejection(task)], sticky_attributes=sticky(world))
    waiting.answer()
    polling = world.poll_later(sticky(world)["worker_task_queue"])
    waiting = update(world, "second")
    task = polling.answer()
    answer(world, task, acceptance(task, "second"), response("second"))
    waiting.answer()
    end(world)


@scenario
def update_rides_on_the_first_task(world: World) -> None:
    world.start()
    waiting = update(world)
    world.wait_s(1)
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    end(world)


@scenario
def update_while_a_task_runs(world: World) -> None:
    world.start()
    task = world.poll()
    waiting = update(world)
    world.wait_s(1)
    world.complete(task, record_marker())
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    end(world)


@scenario
def update_and_a_signal(world: World) -> None:
    idle(world)
    waiting = update(world)
    task = world.poll()
    world.signal("one")
    answer(world, task, acceptance(task), response())
    waiting.answer()
    world.turn(complete_workflow())


@scenario
def update_and_a_signal_before_the_task(world: World) -> None:
    idle(world)
    waiting = update(world)
    world.wait_s(1)
    world.signal("one")
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    end(world)


@scenario
def update_is_sent_twice(world: World) -> None:
    idle(world)
    first, second = update(world), update(world)
    task = world.poll()
    answer(world, task, acceptance(task), response())
    first.answer()
    second.answer()
    update(world).answer()
    end(world)
    update(world).answer()


@scenario
def updates_together(world: World) -> None:
    idle(world)
    world.signal("go")
    waiting = []
    for name in ("one", "two", "three"):
        waiting.append(update(world, name))
        world.wait_s(1)
    task = world.poll()
    rest = [acceptance(task, "one"), response("one"), acceptance(task, "three")]
    world.complete(task, *carry(*rest), messages=[*rest, rejection(task, "two")])
    waiting[0].answer()
    waiting[1].answer()
    world.signal("more")
    answer(world, world.poll(), response("three"))
    waiting[2].answer()
    end(world)


@scenario
def update_of_a_task_that_fails(world: World) -> None:
    idle(world)
    waiting = update(world)
    world.fail_task(world.poll())
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    end(world)


@scenario
def update_of_a_task_that_times_out(world: World) -> None:
    world.start(workflow_task_timeout=seconds(3))
    world.turn()
    waiting = update(world)
    world.poll()
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    end(world)


@scenario
def update_of_a_workflow_whose_tasks_fail(world: World) -> None:
    world.start()
    for _ in range(3):
        world.fail_task(world.poll())
    update(world).answer()
    world.terminate()


@scenario
def update_in_the_last_task(world: World) -> None:
    idle(world)
    waiting = update(world)
    task = world.poll()
    answer(world, task, acceptance(task), response(), then=(complete_workflow(),))
    waiting.answer()
    find(world)
    update(world).answer()
    update(world, "late").answer()


@scenario
def update_is_accepted_and_the_workflow_ends(world: World) -> None:
    idle(world)
    waiting = update(world)
    task = world.poll()
    answer(world, task, acceptance(task), then=(complete_workflow(),))
    waiting.answer()
    find(world)


@scenario
def update_is_not_accepted_and_the_workflow_ends(world: World) -> None:
    idle(world)
    waiting = update(world)
    world.turn(complete_workflow())
    waiting.answer()


@scenario
def update_and_the_workflow_is_terminated(world: World) -> None:
    idle(world)
    accepted = update(world)
    task = world.poll()
    answer(world, task, acceptance(task))
    waiting = update(world, "second")
    world.poll()
    world.terminate()
    accepted.answer()
    waiting.answer()


@scenario
def update_and_the_workflow_continues(world: World) -> None:
    idle(world)
    waiting = update(world)
    task = world.poll()
    answer(world, task, acceptance(task), then=(continue_as_new(),))
    waiting.answer()
    world.terminate()


@scenario
def update_stages(world: World) -> None:
    idle(world)
    update(world, "admitted", stage="ADMITTED").answer()
    find(world, "nobody")
    find(world, "nobody", stage="ACCEPTED")
    waiting = update(world, "unspecified", stage="UNSPECIFIED")
    task = world.poll()
    answer(world, task, acceptance(task, "unspecified"), response("unspecified"))
    waiting.answer()
    find(world, "unspecified", stage="ADMITTED")
    world.terminate()


@scenario
def bad_updates(world: World) -> None:
    run_id = world.start()
    world.turn()
    other = "11111111-2222-3333-4444-555555555555"
    for fields in (
        {},
        {"workflow_execution": world.execution()},
        {"workflow_execution": world.execution(), "request": {}},
        {"workflow_execution": world.execution(), "request": {"meta": {"update_id": "u"}}},
        {"workflow_execution": world.execution(), "request": {"meta": {"update_id": "u"}, "input": {}}},
        {"workflow_execution": world.execution(), "request": request("x" * 1001)},
        {"workflow_execution": {}, "request": request("u")},
        {"workflow_execution": world.execution("nobody"), "request": request("u")},
        {"workflow_execution": world.execution(run_id="not a uuid"), "request": request("u")},
        {"workflow_execution": world.execution(run_id=other), "request": request("u")},
        {"workflow_execution": world.execution(), "request": request("u"), "first_execution_run_id": other},
        {"workflow_execution": world.execution(run_id=run_id), "request": request("u"), "namespace": "nobody"},
        {"workflow_execution": world.execution(run_id=run_id), "request": request("u"), "namespace": ""},
    ):
        world.attempt("UpdateWorkflowExecution", **fields)
    for fields in (
        {},
        {"update_ref": {}},
        {"update_ref": {"workflow_execution": world.execution("nobody"), "update_id": "u"}},
        {"update_ref": {"workflow_execution": world.execution(run_id="not a uuid"), "update_id": "u"}},
        {"update_ref": {"workflow_execution": world.execution(), "update_id": "u"}, "namespace": "nobody"},
    ):
        world.attempt("PollWorkflowExecutionUpdate", **fields)
    world.terminate()


@scenario
def bad_update_answers(world: World) -> None:
    for name in ("unknown-response", "too-early", "unknown-command", "no-command-id", "twice"):
        world.start(name)
        world.turn()
        waiting = update(world, name=name)
        task = world.poll()
        messages = {
            "unknown-response": [response("nobody")],
            "too-early": [response()],
            "unknown-command": [],
            "no-command-id": [],
            "twice": [acceptance(task), acceptance(task)],
        }[name]
        commands = {
            "unknown-command": [command("PROTOCOL_MESSAGE", message_id="nobody")],
            "no-command-id": [command("PROTOCOL_MESSAGE")],
        }.get(name, carry(*messages))
        world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, *commands, messages=messages))
        waiting.answer()
        world.terminate(name)
