"""Resets: where a run can begin again, what is shared, and what the new run is given once more."""

from __future__ import annotations

from payload import (
    cancel_activity,
    complete_workflow,
    continue_as_new,
    fail_workflow,
    payload,
    payloads,
    record_marker,
    schedule_activity,
    seconds,
    signal_external,
    start_child,
    start_timer,
)
from registry import scenario_of
from scenarios.updates import acceptance, answer, find, message, request, response, update
from temporalio.api.update.v1 import Acceptance
from world import World

scenario = scenario_of("ResetWorkflowExecution")

EXCLUDE = "RESET_REAPPLY_EXCLUDE_TYPE_"


def reset_fields(world: World, event_id: int, run_id: str = "", **fields) -> dict:
    return {
        "workflow_execution": world.execution(run_id=run_id),
        "workflow_task_finish_event_id": event_id,
        "request_id": f"reset-{event_id}",
        "reason": "try again",
    } | fields


def reset(world: World, event_id: int, run_id: str = "", **fields) -> str:
    return world.call("ResetWorkflowExecution", **reset_fields(world, event_id, run_id, **fields)).run_id


def accept_again(update_id: str = "update") -> dict:
    """Of an update that was admitted by a reset: workers read it in the history, and no message brings it."""
    body = Acceptance(
        accepted_request_message_id=f"{update_id}/request",
        accepted_request_sequencing_event_id=5,
        accepted_request=request(update_id),
    )
    return message(update_id, "accept", body)


def end(world: World) -> None:
    world.turn(complete_workflow())


@scenario
def reset_of_a_running_workflow(world: World) -> None:
    base = world.start(
        memo={"fields": {"m": payload(1)}},
        workflow_execution_timeout=seconds(1000),
        workflow_run_timeout=seconds(500),
        user_metadata={"summary": payload("sum")},
        priority={"priority_key": 2, "fairness_key": "tenant"},
    )
    world.turn(start_timer(after_s=600))
    world.describe()
    reset(world, 4)
    world.describe()
    world.describe(run_id=base)
    end(world)


@scenario
def reset_of_a_closed_workflow(world: World) -> None:
    base = world.start()
    world.turn(record_marker())
    world.signal("one")
    world.turn(fail_workflow())
    reset(world, 4)
    world.describe(run_id=base)
    end(world)
    world.describe(run_id=base)


@scenario
def reset_places(world: World) -> None:
    base = world.start()
    world.turn()
    world.signal("one")
    world.fail_task(world.poll())
    world.signal("two")
    world.turn(record_marker(), complete_workflow())
    tasks = [3, 4, 7, 8, 9, 10, 12]
    others = [-1, 0, 1, 2, 5, 6, 13, 14, 15, 16]
    for event_id in sorted(tasks + others):
        world.attempt("ResetWorkflowExecution", **reset_fields(world, event_id, base))


@scenario
def reset_inside_of_what_was_written_together(world: World) -> None:
    base = world.start()
    world.turn()
    world.signal("one")
    world.fail_task(world.poll())
    world.signal("two")
    world.turn(complete_workflow())
    world.attempt("ResetWorkflowExecution", **reset_fields(world, 11, base))


@scenario
def reset_is_asked_for_twice(world: World) -> None:
    base = world.start()
    world.turn()
    reset(world, 4, base, request_id="same")
    reset(world, 4, base, request_id="same")
    end(world)


@scenario
def reset_again_and_again(world: World) -> None:
    base = world.start()
    world.turn()
    once = reset(world, 4, base, request_id="once")
    reset(world, 4, request_id="twice")
    reset(world, 4, once, request_id="thrice")
    world.attempt("StartWorkflowExecution", **world.start_fields(request_id="thrice"))
    world.attempt("StartWorkflowExecution", **world.start_fields())
    end(world)


@scenario
def reset_gives_signals_again(world: World) -> None:
    world.start()
    world.turn()
    world.signal("one", header={"fields": {"trace": payload("t")}})
    world.turn()
    world.signal("two")
    reset(world, 4)
    task = world.poll()
    world.signal("three")
    world.complete(task)
    world.turn(complete_workflow())


@scenario
def reset_and_a_signal_that_is_sent_again(world: World) -> None:
    world.start()
    world.turn()
    world.signal("one")
    reset(world, 4)
    world.signal("one")
    end(world)


@scenario
def reset_leaves_signals_out(world: World) -> None:
    for name, fields in {
        "excluded": {"reset_reapply_exclude_types": [f"{EXCLUDE}SIGNAL"]},
        "none": {"reset_reapply_type": "RESET_REAPPLY_TYPE_NONE"},
        "eligible": {"reset_reapply_type": "RESET_REAPPLY_TYPE_ALL_ELIGIBLE"},
        "both": {
            "reset_reapply_type": "RESET_REAPPLY_TYPE_SIGNAL",
            "reset_reapply_exclude_types": [f"{EXCLUDE}SIGNAL", f"{EXCLUDE}NEXUS"],
        },
    }.items():
        world.start(name)
        world.turn()
        world.signal("one", name)
        reset(world, 4, workflow_execution=world.execution(name), **fields)
        end(world)


@scenario
def reset_while_a_task_is_out(world: World) -> None:
    world.start()
    world.turn()
    world.signal("one")
    task = world.poll()
    world.signal("two")
    reset(world, 4)
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task))
    end(world)


@scenario
def reset_to_the_task_that_is_out(world: World) -> None:
    world.start()
    world.poll()
    world.signal("one")
    reset(world, 3)
    world.turn()
    world.signal("two")
    end(world)


@scenario
def reset_with_updates(world: World) -> None:
    world.start()
    world.turn()
    waiting = update(world)
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    waiting = update(world, "second", "ACCEPTED")
    task = world.poll()
    answer(world, task, acceptance(task, "second"))
    waiting.answer()
    reset(world, 4)
    find(world)
    task = world.poll()
    messages = [accept_again(), response(), accept_again("second"), response("second")]
    answer(world, task, *messages)
    find(world)
    find(world, "second")
    world.signal("end")
    end(world)


@scenario
def reset_leaves_updates_out(world: World) -> None:
    for name, fields in {
        "excluded": {"reset_reapply_exclude_types": [f"{EXCLUDE}UPDATE"]},
        "signals": {"reset_reapply_type": "RESET_REAPPLY_TYPE_SIGNAL"},
    }.items():
        world.start(name)
        world.turn()
        waiting = update(world, name=name)
        task = world.poll()
        answer(world, task, acceptance(task), response())
        waiting.answer()
        world.signal("one", name)
        reset(world, 4, workflow_execution=world.execution(name), **fields)
        find(world, name=name)
        end(world)


@scenario
def reset_of_a_reset_with_updates(world: World) -> None:
    base = world.start()
    world.turn()
    waiting = update(world)
    task = world.poll()
    answer(world, task, acceptance(task), response())
    waiting.answer()
    once = reset(world, 4)
    reset(world, 4, once, request_id="twice")
    reset(world, 4, base, request_id="thrice")
    task = world.poll()
    answer(world, task, accept_again(), response(), then=(complete_workflow(),))


@scenario
def reset_with_activities(world: World) -> None:
    # Two queues: in which order two tasks leave one is the server's affair.
    other = f"{world.queue}-other"
    world.start()
    world.turn(schedule_activity("started"), schedule_activity("waiting", task_queue={"name": other}))
    world.signal("go")
    world.poll_activity()
    world.turn()
    reset(world, 9)
    world.describe()
    world.finish_activity(world.poll_activity())
    world.finish_activity(world.poll_activity(other))
    end(world)


@scenario
def reset_after_an_activity_has_started(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    world.finish_activity(world.poll_activity())
    world.turn()
    world.signal("go")
    world.turn()
    reset(world, 9)
    end(world)


@scenario
def reset_with_an_activity_to_cancel(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    world.poll_activity()
    world.signal("go")
    world.turn(cancel_activity(5))
    world.signal("end")
    world.turn()
    reset(world, 13)
    world.describe()
    world.poll_activity()
    end(world)


@scenario
def reset_with_a_timer(world: World) -> None:
    world.start()
    world.turn(start_timer(after_s=2))
    world.signal("go")
    world.turn()
    reset(world, 8)
    world.turn()
    end(world)


@scenario
def reset_keeps_a_child(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")))
    world.turn()
    world.signal("go")
    world.turn()
    reset(world, 9)
    world.describe()
    world.turn()
    world.turn(complete_workflow("from the child"), queue=world.children)
    end(world)


@scenario
def reset_tells_of_a_child_once_more(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")))
    world.turn()
    world.turn(complete_workflow("from the child"), queue=world.children)
    world.turn()
    reset(world, 9)
    end(world)


@scenario
def reset_after_a_child_has_outlived_its_parent(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child"), parent_close_policy="PARENT_CLOSE_POLICY_ABANDON"))
    world.turn()
    world.signal("end")
    end(world)
    # Nobody is there to hear of it, and the new run does not either.
    world.turn(complete_workflow("from the child"), queue=world.children)
    world.wait_s(1)
    reset(world, 9)
    world.turn()
    world.describe()
    world.signal("end again", request_id="end again")
    end(world)


@scenario
def reset_before_a_child(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")))
    world.turn()
    reset(world, 4)
    world.turn()
    world.describe("child")
    world.turn(complete_workflow("from the child"), queue=world.children)
    world.signal("end")
    end(world)


@scenario
def reset_before_a_child_that_is_started_again(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")))
    world.turn()
    world.turn(queue=world.children)
    reset(world, 4)
    world.turn(start_child(world.id("child")))
    end(world)
    world.terminate("child")


@scenario
def reset_before_a_child_and_the_end(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")))
    world.turn()
    reset(world, 4)
    world.turn(complete_workflow())
    world.wait_s(1)
    world.turn(complete_workflow("from the child"), queue=world.children)


@scenario
def reset_keeps_a_child_until_the_end(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")))
    world.turn()
    world.signal("go")
    world.turn()
    reset(world, 9)
    world.turn(complete_workflow())
    world.wait_s(2)


@scenario
def reset_of_a_child(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")))
    world.turn()
    world.turn(record_marker(), queue=world.children)
    reset(world, 4, workflow_execution=world.execution("child"))
    world.turn(complete_workflow("from the child"), queue=world.children)
    end(world)


@scenario
def reset_after_a_letter(world: World) -> None:
    world.start("target", task_queue={"name": world.children})
    world.start()
    world.turn(signal_external(world.id("target")))
    world.turn()
    reset(world, 4)
    world.turn(signal_external(world.id("target")))
    world.turn(complete_workflow())
    world.wait_for("WORKFLOW_EXECUTION_SIGNALED", "target", count=2)
    world.turn(complete_workflow(), queue=world.children)


@scenario
def reset_of_a_run_that_continued(world: World) -> None:
    base = world.start()
    world.turn()
    world.signal("one")
    world.turn(continue_as_new())
    world.turn()
    world.signal("two")
    world.turn()
    reset(world, 4, base)
    end(world)


@scenario
def reset_of_the_last_run(world: World) -> None:
    world.start()
    world.turn(continue_as_new())
    world.turn()
    world.signal("two")
    reset(world, 4)
    end(world)


@scenario
def reset_of_a_run_before_the_current_one(world: World) -> None:
    first = world.start()
    end(world)
    second = world.start(request_id="second")
    world.turn()
    world.signal("one")
    reset(world, 4, first)
    world.describe(run_id=first)
    world.describe(run_id=second)
    end(world)


@scenario
def reset_of_a_cancelled_workflow(world: World) -> None:
    world.start()
    world.turn()
    world.request_cancel()
    world.turn(complete_workflow())
    reset(world, 4)
    world.describe()
    end(world)


@scenario
def reset_keeps_a_cancel_request(world: World) -> None:
    world.start()
    world.turn()
    world.request_cancel()
    world.turn()
    reset(world, 7)
    world.describe()
    end(world)


@scenario
def reset_gives_options_again(world: World) -> None:
    world.start(priority={"priority_key": 2})
    world.turn()
    world.attempt(
        "UpdateWorkflowExecutionOptions",
        workflow_execution=world.execution(),
        workflow_execution_options={"priority": {"priority_key": 4}},
        update_mask={"paths": ["priority.priority_key"]},
    )
    world.signal("one")
    world.turn()
    reset(world, 4)
    world.describe()
    end(world)


@scenario
def reset_with_other_options(world: World) -> None:
    world.start(priority={"priority_key": 2})
    world.turn()
    changes = {
        "workflow_execution_options": {"priority": {"priority_key": 4}},
        "update_mask": {"paths": ["priority"]},
    }
    reset(world, 4, post_reset_operations=[{"update_workflow_options": changes}])
    world.describe()
    end(world)


@scenario
def reset_of_a_late_workflow(world: World) -> None:
    world.start(workflow_start_delay=seconds(1), cron_schedule="", memo={"fields": {"m": payload(1)}})
    world.turn(complete_workflow())
    reset(world, 4)
    world.describe()
    end(world)


@scenario
def bad_resets(world: World) -> None:
    base = world.start()
    world.turn(complete_workflow())
    method = "ResetWorkflowExecution"
    world.attempt(method, **reset_fields(world, 4, request_id=""))
    world.attempt(method, **reset_fields(world, 4, "not a run"))
    world.attempt(method, **reset_fields(world, 4, "11111111-2222-3333-4444-555555555555"))
    world.attempt(method, **reset_fields(world, 4, workflow_execution=world.execution("nobody")))
    world.attempt(method, **reset_fields(world, 4, workflow_execution=None))
    world.attempt(method, **reset_fields(world, 4, workflow_execution={"run_id": base}))
    world.attempt(method, **reset_fields(world, 4, namespace="nowhere"))
    world.attempt(method, **reset_fields(world, 4, request_id="x" * 1001))


def build(number: int) -> dict:
    """The code of the worker that completes a task."""
    return {"worker_version_stamp": {"build_id": f"build-{number}"}}


@scenario
def reset_points_of_builds(world: World) -> None:
    world.start()
    world.turn(**build(1))
    world.signal("one")
    world.turn(**build(1))
    world.signal("two")
    world.turn(**build(2))
    world.signal("three")
    world.turn(binary_checksum="checksum")
    world.describe()
    reset(world, 12)
    world.describe()
    world.turn(complete_workflow(), **build(3))


@scenario
def reset_points_of_a_chain(world: World) -> None:
    first = world.start()
    world.turn(continue_as_new(), **build(1))
    world.describe(run_id=first)
    world.turn(continue_as_new(), **build(1))
    world.turn(**build(2))
    world.describe()
    world.signal("again")
    world.turn(fail_workflow())


@scenario
def reset_points_while_others_are_asked(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")), **build(1))
    world.wait_for("CHILD_WORKFLOW_EXECUTION_STARTED")
    world.turn(**build(2))
    world.describe()
    world.terminate("child")
    world.turn(complete_workflow(), **build(3))


@scenario
def reset_points_are_not_kept_forever(world: World) -> None:
    world.start()
    for number in range(1, 23):
        world.turn(**build(number))
        world.signal(f"signal-{number}")
    world.describe()
    world.terminate()


@scenario
def reset_is_followed_by_a_signal(world: World) -> None:
    world.start()
    world.turn()
    signal = {"signal_name": "after", "input": payloads("s"), "header": {"fields": {"trace": payload("t")}}}
    world.attempt("ResetWorkflowExecution", **reset_fields(world, 4, post_reset_operations=[{"signal_workflow": signal}]))
    world.describe()
