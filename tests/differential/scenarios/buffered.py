"""What happens while a workflow task runs waits for its end, and in which order it is then told."""

from __future__ import annotations

from payload import (
    cancel_activity,
    cancel_workflow,
    command,
    complete_workflow,
    failure,
    payloads,
    record_marker,
    schedule_activity,
    signal_external,
    start_timer,
)
from registry import scenario
from world import World


@scenario
def signals_before_the_first_task(world: World) -> None:
    world.start()
    world.signal("one")
    world.signal("two")
    world.request_cancel()
    world.turn(complete_workflow())


@scenario
def signals_during_a_task(world: World) -> None:
    world.start()
    task = world.poll()
    world.signal("one")
    world.signal("two")
    world.describe()
    world.complete(task, record_marker())
    world.turn(complete_workflow())


@scenario
def signal_against_completion(world: World) -> None:
    world.start()
    task = world.poll()
    world.signal("one")
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, record_marker(), complete_workflow()))
    task = world.poll()
    # The run is closing: nobody may disturb it now.
    fields = {"workflow_execution": world.execution(), "signal_name": "two"}
    world.attempt("SignalWorkflowExecution", **fields)
    world.complete(task, complete_workflow())


@scenario
def signal_against_every_closing_command(world: World) -> None:
    for name, closing in {
        "cancel": cancel_workflow(),
        "fail": command("FAIL_WORKFLOW_EXECUTION", failure=failure()),
        "continue": command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", workflow_type={"name": "Type"}),
    }.items():
        world.start(name)
        task = world.poll()
        world.signal("one", name)
        world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, closing))
        world.turn(complete_workflow())


@scenario
def results_during_a_task(world: World) -> None:
    world.start()
    world.turn(schedule_activity("a"), schedule_activity("b"), schedule_activity("c"))
    tasks = world.poll_activities(3)
    world.signal("go")
    task = world.poll()
    world.finish_activity(tasks["a"])
    world.signal("one")
    world.fail_activity(tasks["b"], failure(non_retryable=True))
    world.request_cancel()
    world.complete(task, record_marker(), cancel_activity(7))
    world.call("RespondActivityTaskCanceled", task_token=tasks["c"].task_token)
    world.turn(complete_workflow())


@scenario
def activity_ends_in_the_buffer_and_is_cancelled_then(world: World) -> None:
    world.start()
    world.turn(schedule_activity("a"))
    activity = world.poll_activity()
    world.signal("go")
    task = world.poll()
    world.finish_activity(activity)
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, cancel_activity(5)))
    world.turn(complete_workflow())


@scenario
def timer_fires_during_a_task(world: World) -> None:
    world.start()
    world.turn(start_timer(after_s=1))
    world.signal("go")
    task = world.poll()
    world.signal("one")
    world.wait_s(3)
    world.signal("two")
    world.complete(task)
    world.turn(complete_workflow())


@scenario
def signals_during_a_task_that_fails(world: World) -> None:
    world.start()
    task = world.poll()
    world.signal("one")
    world.fail_task(task)
    world.turn(complete_workflow())


@scenario
def signals_during_a_transient_task(world: World) -> None:
    world.start()
    world.fail_task(world.poll())
    task = world.poll()
    world.signal("one")
    world.fail_task(task)
    world.turn(complete_workflow())


@scenario
def signals_while_a_transient_task_waits(world: World) -> None:
    world.start()
    world.fail_task(world.poll())
    world.signal("one")
    world.turn(complete_workflow())


@scenario
def signals_during_a_task_that_times_out(world: World) -> None:
    world.start(workflow_task_timeout={"seconds": 3})
    world.poll()
    world.signal("one")
    world.turn(complete_workflow())


@scenario
def signal_from_another_workflow_during_a_task(world: World) -> None:
    world.start("target")
    task = world.poll()
    world.start("sender")
    world.turn(signal_external(world.id("target"), header={"fields": {"trace": payloads("t").payloads[0]}}))
    world.turn(complete_workflow())
    world.complete(task)
    world.turn(complete_workflow())
