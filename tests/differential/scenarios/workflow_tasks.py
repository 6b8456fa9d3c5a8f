"""Workflow tasks that fail, time out, go to sticky queues and keep their worker busy."""

from __future__ import annotations

from payload import complete_workflow, payloads, record_marker, schedule_activity, seconds, start_timer
from registry import scenario
from world import World


def sticky(world: World, timeout_s: float = 60) -> dict:
    queue = {"name": f"{world.queue}-sticky", "kind": "TASK_QUEUE_KIND_STICKY", "normal_name": world.queue}
    return {"worker_task_queue": queue, "schedule_to_start_timeout": seconds(timeout_s)}


@scenario
def task_fails(world: World) -> None:
    world.start()
    world.fail_task(world.poll())
    world.describe()
    world.fail_task(world.poll(), cause="NON_DETERMINISTIC_ERROR")
    world.fail_task(world.poll())
    world.describe()
    task = world.poll()
    world.attempt("GetWorkflowExecutionHistory", execution=world.execution())
    world.complete(task, complete_workflow())


@scenario
def task_fails_with_every_field(world: World) -> None:
    world.start()
    world.fail_task(world.poll(), binary_checksum="checksum", identity="another")
    world.turn(complete_workflow(), identity="a third")


@scenario
def task_fails_with_causes_that_reset_the_attempt(world: World) -> None:
    world.start()
    for cause in ("UNHANDLED_COMMAND", "FORCE_CLOSE_COMMAND", "RESET_WORKFLOW", "UNSPECIFIED"):
        world.attempt(
            "RespondWorkflowTaskFailed",
            task_token=world.poll().task_token,
            cause=f"WORKFLOW_TASK_FAILED_CAUSE_{cause}",
        )
    world.turn(complete_workflow())


@scenario
def task_is_too_large_for_its_worker(world: World) -> None:
    world.start()
    world.fail_task(world.poll(), cause="GRPC_MESSAGE_TOO_LARGE")


@scenario
def task_times_out(world: World) -> None:
    world.start(workflow_task_timeout=seconds(3))
    task = world.poll()
    again = world.poll()
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, complete_workflow()))
    world.attempt("RespondWorkflowTaskFailed", task_token=task.task_token)
    world.complete(again, complete_workflow())


@scenario
def task_is_answered_twice(world: World) -> None:
    world.start()
    task = world.turn(start_timer(after_s=60))
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, complete_workflow()))
    world.attempt("RespondWorkflowTaskFailed", task_token=task.task_token)
    world.signal("go")
    world.turn(complete_workflow())
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, complete_workflow()))
    world.attempt("RespondWorkflowTaskFailed", task_token=task.task_token)


@scenario
def sticky_tasks(world: World) -> None:
    world.start()
    world.turn(sticky_attributes=sticky(world))
    polling = world.poll_later(sticky(world)["worker_task_queue"])
    world.signal("one")
    task = polling.answer()
    world.signal("two")
    polling = world.poll_later(sticky(world)["worker_task_queue"])
    world.complete(task, record_marker(), sticky_attributes=sticky(world))
    task = polling.answer()
    # Without attributes it goes back to the normal queue.
    world.complete(task, record_marker())
    world.signal("three")
    world.turn(complete_workflow())


@scenario
def sticky_task_fails(world: World) -> None:
    world.start()
    world.turn(sticky_attributes=sticky(world))
    polling = world.poll_later(sticky(world)["worker_task_queue"])
    world.signal("one")
    world.fail_task(polling.answer())
    world.turn(complete_workflow())


@scenario
def sticky_task_times_out(world: World) -> None:
    world.start(workflow_task_timeout=seconds(3))
    world.turn(sticky_attributes=sticky(world))
    polling = world.poll_later(sticky(world)["worker_task_queue"])
    world.signal("one")
    polling.answer()
    world.turn(complete_workflow())


@scenario
def sticky_task_is_not_taken(world: World) -> None:
    world.start()
    world.turn(sticky_attributes=sticky(world, 1))
    # Someone polls there, so the queue is not known to be deserted.
    polling = world.poll_later(sticky(world)["worker_task_queue"])
    world.signal("one")
    world.complete(polling.answer(), sticky_attributes=sticky(world, 1))
    world.signal("two")
    world.turn(complete_workflow())


@scenario
def sticky_queue_is_reset(world: World) -> None:
    world.start()
    world.turn(sticky_attributes=sticky(world))
    world.call("ResetStickyTaskQueue", execution=world.execution())
    world.signal("one")
    world.turn(complete_workflow())
    world.attempt("ResetStickyTaskQueue", execution=world.execution())


@scenario
def sticky_worker_shuts_down(world: World) -> None:
    world.start()
    world.turn(sticky_attributes=sticky(world))
    world.call("ShutdownWorker", sticky_task_queue=f"{world.queue}-sticky", reason="enough")
    world.signal("one")
    world.turn(complete_workflow())


@scenario
def task_keeps_its_worker(world: World) -> None:
    world.start()
    world.turn(force_create_new_workflow_task=True)
    world.turn(record_marker(), force_create_new_workflow_task=True)
    world.turn(complete_workflow())


@scenario
def task_is_given_with_the_answer(world: World) -> None:
    world.start()
    task = world.poll()
    more = {"force_create_new_workflow_task": True, "return_new_workflow_task": True}
    answer = world.complete(task, record_marker(), sticky_attributes=sticky(world), **more)
    answer = world.complete(answer.workflow_task, return_new_workflow_task=True)
    world.signal("one")
    task = world.poll()
    world.signal("two")
    answer = world.complete(task, return_new_workflow_task=True)
    world.complete(answer.workflow_task, complete_workflow())


@scenario
def task_of_another_poller(world: World) -> None:
    world.start()
    task = world.poll(identity="one", binary_checksum="checksum")
    world.complete(task, schedule_activity(), identity="another", sdk_metadata={"sdk_name": "script"})
    activity = world.poll_activity(identity="third")
    world.call(
        "RespondActivityTaskCompleted", task_token=activity.task_token, identity="fourth", result=payloads("done")
    )
    world.turn(complete_workflow())


@scenario
def polls_with_little_time(world: World) -> None:
    for rpc in ("PollWorkflowTaskQueue", "PollActivityTaskQueue"):
        world.later(rpc, timeout_s=1, task_queue={"name": world.queue}).answer()
        world.later(rpc, timeout_s=4, task_queue={"name": world.queue}).answer()
