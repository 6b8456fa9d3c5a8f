"""What people and other systems attach to commands and requests: notes for readers, and links."""

from __future__ import annotations

from payload import (
    cancel_external,
    command,
    complete_workflow,
    continue_as_new,
    fail_workflow,
    payload,
    payloads,
    record_marker,
    schedule_activity,
    signal_external,
    start_child,
    start_timer,
)
from registry import scenario
from world import World

LINKS = [
    {"workflow_event": {"namespace": "n", "workflow_id": "w", "run_id": "r", "event_ref": {"event_id": 3, "event_type": "EVENT_TYPE_WORKFLOW_TASK_STARTED"}}},
    {"batch_job": {"job_id": "j"}},
]


def note(of: str) -> dict:
    return {"summary": payload(f"summary of {of}"), "details": payload(f"details of {of}")}


@scenario
def notes_on_commands(world: World) -> None:
    world.start()
    world.start("other", task_queue={"name": f"{world.queue}-other"})
    world.turn(
        schedule_activity(user_metadata=note("activity")),
        start_timer(after_s=600, user_metadata=note("timer")),
        record_marker(user_metadata=note("marker")),
        command("MODIFY_WORKFLOW_PROPERTIES", upserted_memo={"fields": {"m": payload(1)}}, user_metadata=note("memo")),
        start_child(world.id("child"), user_metadata=note("child")),
    )
    world.wait_for("CHILD_WORKFLOW_EXECUTION_STARTED")
    world.turn(signal_external(world.id("other"), user_metadata=note("signal")))
    world.wait_for("EXTERNAL_WORKFLOW_EXECUTION_SIGNALED")
    world.turn(cancel_external(world.id("other"), user_metadata=note("cancel")))
    world.wait_for("EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    world.terminate("child")
    world.wait_for("CHILD_WORKFLOW_EXECUTION_TERMINATED")
    world.turn(complete_workflow())


@scenario
def notes_on_ends(world: World) -> None:
    world.start("completed")
    task = world.poll()
    done = command("COMPLETE_WORKFLOW_EXECUTION", result=payloads("r"), user_metadata=note("completion"))
    world.complete(task, done)
    world.start("failed")
    failed = fail_workflow()
    failed.user_metadata.MergeFrom(done.user_metadata)
    world.turn(failed)
    world.start("continued")
    again = continue_as_new()
    again.user_metadata.MergeFrom(done.user_metadata)
    world.turn(again)
    world.turn(complete_workflow())


@scenario
def links_on_requests(world: World) -> None:
    world.start(links=LINKS)
    world.signal("linked", links=LINKS)
    world.request_cancel(links=LINKS)
    world.turn()
    world.terminate(links=LINKS)


@scenario
def links_on_a_start_with_a_signal(world: World) -> None:
    fields = world.start_fields(links=LINKS)
    world.call("SignalWithStartWorkflowExecution", **fields, signal_name="s", signal_input=payloads("s"))
    world.turn(complete_workflow())


@scenario
def bad_links(world: World) -> None:
    world.start()
    for links in [
        [{}],
        [{"batch_job": {}}],
        [{"workflow_event": {}}],
        [{"workflow_event": {"namespace": "n"}}],
        [{"workflow_event": {"namespace": "n", "workflow_id": "w"}}],
        [{"workflow_event": {"namespace": "n", "workflow_id": "w", "run_id": "r", "event_ref": {"event_id": 3}}}],
        [{"activity": {"namespace": "n", "activity_id": "a"}}],
        [{"batch_job": {"job_id": "j" * 5000}}],
        LINKS * 6,
    ]:
        names = {"workflow_execution": world.execution(), "links": links}
        world.attempt("SignalWorkflowExecution", **names, signal_name="s")
        world.attempt("RequestCancelWorkflowExecution", **names)
        world.attempt("TerminateWorkflowExecution", **names | {"workflow_execution": world.execution("nobody")})
