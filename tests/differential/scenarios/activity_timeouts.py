"""Activities that run out of time, and answers that come too late."""

from __future__ import annotations

from payload import cancel_activity, complete_workflow, failure, payloads, schedule_activity, seconds
from registry import scenario
from world import World

ONCE = {"maximum_attempts": 1}
QUICK = {"initial_interval": seconds(0.2), "maximum_attempts": 2}


def end(world: World) -> None:
    world.turn(complete_workflow())


@scenario
def activity_is_not_taken_in_time(world: World) -> None:
    world.start()
    world.turn(schedule_activity(schedule_to_start_timeout=seconds(1)))
    end(world)


@scenario
def activity_is_not_taken_in_all_its_time(world: World) -> None:
    world.start()
    world.turn(schedule_activity(schedule_to_close_timeout=seconds(1)))
    end(world)


@scenario
def activity_runs_too_long(world: World) -> None:
    world.start()
    world.turn(schedule_activity(start_to_close_timeout=seconds(1), retry_policy=ONCE))
    task = world.poll_activity()
    end(world)
    world.attempt("RespondActivityTaskCompleted", task_token=task.task_token)


@scenario
def activity_runs_too_long_twice(world: World) -> None:
    world.start()
    world.turn(schedule_activity(start_to_close_timeout=seconds(3), retry_policy=QUICK))
    first = world.poll_activity()
    world.poll_activity()
    world.attempt("RespondActivityTaskCompleted", task_token=first.task_token)
    world.attempt("RecordActivityTaskHeartbeat", task_token=first.task_token)
    world.describe()
    end(world)


@scenario
def activity_stops_to_heartbeat(world: World) -> None:
    world.start()
    world.turn(schedule_activity(heartbeat_timeout=seconds(1), retry_policy=ONCE))
    task = world.poll_activity()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    end(world)


@scenario
def activity_takes_too_long_in_all(world: World) -> None:
    world.start()
    world.turn(schedule_activity(schedule_to_close_timeout=seconds(1)))
    world.poll_activity()
    end(world)


@scenario
def activity_takes_too_long_in_all_and_has_one_attempt(world: World) -> None:
    world.start()
    world.turn(schedule_activity(schedule_to_close_timeout=seconds(1), retry_policy=ONCE))
    world.poll_activity()
    end(world)


@scenario
def activity_takes_too_long_in_all_after_cancellation(world: World) -> None:
    world.start()
    world.turn(schedule_activity(schedule_to_close_timeout=seconds(3)))
    world.poll_activity()
    world.signal("go")
    world.turn(cancel_activity(5))
    end(world)


@scenario
def activity_takes_too_long_in_all_after_a_failure(world: World) -> None:
    world.start()
    world.turn(schedule_activity(schedule_to_close_timeout=seconds(2), retry_policy={"initial_interval": seconds(0.2)}))
    world.fail_activity(world.poll_activity(), failure("first"))
    world.poll_activity()
    end(world)


@scenario
def activity_times_out_while_nobody_takes_it_again(world: World) -> None:
    world.start()
    world.turn(schedule_activity(schedule_to_close_timeout=seconds(2), retry_policy={"initial_interval": seconds(0.2)}))
    world.fail_activity(world.poll_activity(), failure("first"))
    end(world)


@scenario
def activity_timeout_that_may_not_be_retried(world: World) -> None:
    world.start()
    policy = {"non_retryable_error_types": ["TemporalTimeout:StartToClose"]}
    world.turn(schedule_activity(start_to_close_timeout=seconds(1), retry_policy=policy))
    world.poll_activity()
    end(world)


@scenario
def activity_times_out_with_no_time_for_a_retry(world: World) -> None:
    world.start()
    times = {"start_to_close_timeout": seconds(1), "schedule_to_close_timeout": seconds(5)}
    world.turn(schedule_activity(retry_policy={"initial_interval": seconds(20)}, **times))
    world.poll_activity()
    end(world)


@scenario
def activity_answers_after_the_workflow(world: World) -> None:
    world.start()
    world.turn(schedule_activity(), schedule_activity("other"))
    task = world.poll_activities(2)["activity"]
    world.signal("go")
    end(world)
    world.attempt("RespondActivityTaskCompleted", task_token=task.task_token)
    world.attempt("RespondActivityTaskFailed", task_token=task.task_token, failure=failure())
    world.attempt("RespondActivityTaskCanceled", task_token=task.task_token)
    world.attempt("RecordActivityTaskHeartbeat", task_token=task.task_token)
    by_id = {"workflow_id": world.id(), "activity_id": "activity"}
    world.attempt("RespondActivityTaskCompletedById", **by_id)
    world.attempt("RespondActivityTaskFailedById", failure=failure(), **by_id)
    world.attempt("RespondActivityTaskCanceledById", **by_id)
    world.attempt("RecordActivityTaskHeartbeatById", **by_id)


@scenario
def activity_is_answered_twice(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    task = world.poll_activity()
    world.finish_activity(task)
    world.attempt("RespondActivityTaskCompleted", task_token=task.task_token)
    world.attempt("RespondActivityTaskFailed", task_token=task.task_token, failure=failure())
    world.attempt("RecordActivityTaskHeartbeat", task_token=task.task_token)
    end(world)


@scenario
def activity_failures_of_every_kind(world: World) -> None:
    world.start()
    kinds = {
        "cancelled": {"canceled_failure_info": {"details": payloads("d")}},
        "terminated": {"terminated_failure_info": {}},
        "timeout": {"timeout_failure_info": {"timeout_type": 1}},
        "server": {"server_failure_info": {"non_retryable": True}},
        "plain": {},
    }
    world.turn(*(schedule_activity(name, retry_policy=ONCE) for name in kinds))
    tasks = world.poll_activities(len(kinds))
    for name, kind in sorted(kinds.items()):
        fields = {"message": name, "stack_trace": "here", "cause": failure("the cause")} | kind
        world.attempt("RespondActivityTaskFailed", task_token=tasks[name].task_token, failure=fields)
    world.describe()


@scenario
def activity_fails_without_a_failure(world: World) -> None:
    world.start()
    world.turn(schedule_activity(retry_policy=ONCE))
    world.attempt("RespondActivityTaskFailed", task_token=world.poll_activity().task_token)
    end(world)


@scenario
def activity_result_is_too_large(world: World) -> None:
    world.start()
    world.turn(*(schedule_activity(name) for name in ("failure", "heartbeat", "result")))
    tasks = world.poll_activities(3)
    large = "x" * (2 * 1024 * 1024 + 1)
    world.attempt("RespondActivityTaskCompleted", task_token=tasks["result"].task_token, result=payloads(large))
    world.turn()
    world.attempt("RecordActivityTaskHeartbeat", task_token=tasks["heartbeat"].task_token, details=payloads(large))
    world.turn()
    why = failure(large[:1024] * 8, non_retryable=True)
    world.attempt("RespondActivityTaskFailed", task_token=tasks["failure"].task_token, failure=why)
    end(world)
