"""Activities: every way in which one can end."""

from __future__ import annotations

from payload import (
    cancel_activity,
    complete_workflow,
    failure,
    payloads,
    schedule_activity,
    seconds,
)
from registry import scenario
from world import World

ONCE = {"maximum_attempts": 1}


def end(world: World) -> None:
    world.turn(complete_workflow())


@scenario
def activity_completes(world: World) -> None:
    world.start()
    world.turn(schedule_activity(header={"fields": {"trace": payloads("t").payloads[0]}}))
    world.describe()
    task = world.poll_activity()
    world.describe()
    world.finish_activity(task)
    end(world)


@scenario
def activity_with_every_option(world: World) -> None:
    world.start(workflow_run_timeout=seconds(600))
    policy = {
        "initial_interval": seconds(2),
        "backoff_coefficient": 3,
        "maximum_interval": seconds(50),
        "maximum_attempts": 4,
        "non_retryable_error_types": ["Fatal"],
    }
    world.turn(
        schedule_activity(
            task_queue={"name": world.queue},
            schedule_to_close_timeout=seconds(60),
            schedule_to_start_timeout=seconds(50),
            start_to_close_timeout=seconds(40),
            heartbeat_timeout=seconds(30),
            retry_policy=policy,
            priority={"priority_key": 2, "fairness_key": "tenant", "fairness_weight": 2},
            user_metadata={"summary": payloads("a summary").payloads[0]},
        )
    )
    world.describe()
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_timeouts_are_filled_in(world: World) -> None:
    world.start(workflow_run_timeout=seconds(90))
    only = {"schedule_to_close_timeout": None}
    world.turn(
        schedule_activity("long", schedule_to_close_timeout=seconds(1000)),
        schedule_activity("start", **only, start_to_close_timeout=seconds(50)),
        schedule_activity("both", schedule_to_close_timeout=seconds(50), start_to_close_timeout=seconds(70)),
        schedule_activity("heart", start_to_close_timeout=seconds(50), heartbeat_timeout=seconds(70)),
        schedule_activity("policy", retry_policy={"maximum_attempts": 2}),
        schedule_activity("interval", retry_policy={"initial_interval": seconds(3)}),
    )
    world.describe()
    world.poll_activities(6)
    world.describe()


@scenario
def activity_fails(world: World) -> None:
    world.start()
    world.turn(schedule_activity(retry_policy=ONCE))
    world.fail_activity(world.poll_activity(), failure(details=payloads("why")))
    end(world)


@scenario
def activity_fails_and_must_not_be_retried(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    world.fail_activity(world.poll_activity(), failure(non_retryable=True))
    end(world)


@scenario
def activity_fails_with_a_type_that_ends_retries(world: World) -> None:
    world.start()
    world.turn(schedule_activity(retry_policy={"non_retryable_error_types": ["Fatal"]}))
    world.fail_activity(world.poll_activity(), failure(kind="Fatal"))
    end(world)


@scenario
def activity_is_retried(world: World) -> None:
    world.start()
    # Long enough to be looked at.
    world.turn(schedule_activity(retry_policy={"initial_interval": seconds(5), "maximum_attempts": 3}))
    world.fail_activity(world.poll_activity(), failure("first"))
    world.describe()
    world.fail_activity(world.poll_activity(), failure("second", next_retry_delay=seconds(0.5)))
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_uses_up_its_attempts(world: World) -> None:
    world.start()
    world.turn(schedule_activity(retry_policy={"initial_interval": seconds(0.2), "maximum_attempts": 2}))
    world.fail_activity(world.poll_activity(), failure("first"))
    world.fail_activity(world.poll_activity(), failure("second"))
    end(world)


@scenario
def activity_has_no_time_for_a_retry(world: World) -> None:
    world.start()
    policy = {"initial_interval": seconds(20)}
    world.turn(schedule_activity(schedule_to_close_timeout=seconds(10), retry_policy=policy))
    world.fail_activity(world.poll_activity(), failure("first"))
    end(world)


@scenario
def activity_is_cancelled_before_it_starts(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    world.signal("go")
    world.turn(cancel_activity(5))
    end(world)


@scenario
def activity_is_cancelled_while_it_runs(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    task = world.poll_activity()
    world.signal("go")
    world.turn(cancel_activity(5))
    world.describe()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    world.call("RespondActivityTaskCanceled", task_token=task.task_token, details=payloads("stopped"))
    end(world)


@scenario
def activity_is_cancelled_in_the_task_that_schedules_it(world: World) -> None:
    world.start()
    world.turn(schedule_activity(), cancel_activity(5))
    world.turn(schedule_activity("again"), cancel_activity(11), cancel_activity(11))
    end(world)


@scenario
def activity_is_cancelled_twice(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    world.poll_activity()
    world.signal("one")
    world.turn(cancel_activity(5))
    world.signal("two")
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(world.poll(), cancel_activity(5)))
    world.terminate()


@scenario
def activity_completes_although_it_was_cancelled(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    task = world.poll_activity()
    world.signal("go")
    world.turn(cancel_activity(5))
    world.finish_activity(task)
    end(world)


@scenario
def activity_fails_after_it_was_cancelled(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    task = world.poll_activity()
    world.signal("go")
    world.turn(cancel_activity(5))
    world.fail_activity(task, failure())
    end(world)


@scenario
def activity_says_cancelled_but_nobody_asked(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    task = world.poll_activity()
    world.attempt("RespondActivityTaskCanceled", task_token=task.task_token, details=payloads("stopped"))
    world.finish_activity(task)
    end(world)


@scenario
def activity_heartbeats(world: World) -> None:
    world.start()
    world.turn(schedule_activity(heartbeat_timeout=seconds(30), retry_policy={"initial_interval": seconds(0.1)}))
    task = world.poll_activity()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    world.describe()
    world.fail_activity(task, failure())
    again = world.poll_activity()
    world.call(
        "RespondActivityTaskFailed",
        task_token=again.task_token,
        failure=failure(),
        last_heartbeat_details=payloads("most"),
    )
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_by_id(world: World) -> None:
    world.start()
    elsewhere = {"name": f"{world.queue}-elsewhere"}
    world.turn(
        *(schedule_activity(name, retry_policy=ONCE) for name in ("one", "two", "three")),
        schedule_activity("four", retry_policy=ONCE, task_queue=elsewhere),
    )
    by_id = {"workflow_id": world.id()}
    world.poll_activities(3)
    world.call("RecordActivityTaskHeartbeatById", activity_id="one", details=payloads("half"), **by_id)
    world.call("RespondActivityTaskCompletedById", activity_id="one", result=payloads("done"), **by_id)
    world.turn()
    world.call("RespondActivityTaskFailedById", activity_id="two", failure=failure(), **by_id)
    world.turn(cancel_activity(7))
    world.call("RespondActivityTaskCanceledById", activity_id="three", details=payloads("stopped"), **by_id)
    world.turn()
    world.attempt("RespondActivityTaskCompletedById", activity_id="nobody", **by_id)
    world.attempt("RespondActivityTaskFailedById", activity_id="four", failure=failure(), **by_id)
    world.attempt("RecordActivityTaskHeartbeatById", activity_id="four", **by_id)
    # Nobody has taken it, and it may be completed all the same.
    world.call("RespondActivityTaskCompletedById", activity_id="four", result=payloads("done"), **by_id)
    end(world)
