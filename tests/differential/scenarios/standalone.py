"""Activities without a workflow: how they are started, end, and are told about."""

from __future__ import annotations

from google.protobuf.message import Message
from payload import failure, payload, payloads, seconds
from registry import scenario
from world import World

ONCE = {"maximum_attempts": 1}
EVERYTHING = {
    "include_input": True,
    "include_outcome": True,
    "include_heartbeat_details": True,
    "include_last_failure": True,
}


def fields_of(world: World, name: str = "activity", **fields) -> dict:
    return {
        "activity_id": world.id(name),
        "activity_type": {"name": "Act"},
        "task_queue": {"name": world.queue},
        "start_to_close_timeout": seconds(60),
        "request_id": f"start-{name}",
        "input": payloads("input"),
    } | fields


def start(world: World, name: str = "activity", **fields) -> str:
    return world.call("StartActivityExecution", **fields_of(world, name, **fields)).run_id


def describe(world: World, name: str = "activity", **fields) -> Message:
    return world.call("DescribeActivityExecution", activity_id=world.id(name), **(EVERYTHING | fields))


def outcome(world: World, name: str = "activity", run_id: str = "") -> None:
    world.call("PollActivityExecution", activity_id=world.id(name), run_id=run_id)
    describe(world, name, run_id=run_id)


@scenario
def standalone_completes(world: World) -> None:
    start(world, header={"fields": {"trace": payload("t")}})
    describe(world)
    task = world.poll_activity()
    describe(world)
    world.finish_activity(task)
    outcome(world)
    world.attempt("RespondActivityTaskCompleted", task_token=task.task_token, result=payloads("again"))
    world.attempt("RecordActivityTaskHeartbeat", task_token=task.task_token)


@scenario
def standalone_with_every_option(world: World) -> None:
    start(
        world,
        schedule_to_close_timeout=seconds(60),
        schedule_to_start_timeout=seconds(50),
        start_to_close_timeout=seconds(40),
        heartbeat_timeout=seconds(30),
        retry_policy={
            "initial_interval": seconds(2),
            "backoff_coefficient": 3,
            "maximum_interval": seconds(50),
            "maximum_attempts": 4,
            "non_retryable_error_types": ["Fatal"],
        },
        priority={"priority_key": 2, "fairness_key": "tenant", "fairness_weight": 2},
        user_metadata={"summary": payload("a summary"), "details": payload("details")},
    )
    describe(world)
    world.finish_activity(world.poll_activity())
    outcome(world)


@scenario
def standalone_only_schedule_to_close(world: World) -> None:
    start(world, start_to_close_timeout=seconds(0), schedule_to_close_timeout=seconds(100))
    describe(world)
    task = world.poll_activity()
    world.fail_activity(task, failure(non_retryable=True))
    outcome(world)


@scenario
def standalone_fails_once(world: World) -> None:
    start(world, retry_policy=ONCE)
    world.fail_activity(world.poll_activity(), failure())
    outcome(world)


@scenario
def standalone_is_retried(world: World) -> None:
    start(world, retry_policy={"initial_interval": seconds(1), "maximum_attempts": 3})
    task = world.poll_activity()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    describe(world)
    world.fail_activity(task, failure("first"))
    describe(world)
    task = world.poll_activity()
    describe(world)
    world.finish_activity(task)
    outcome(world)


@scenario
def standalone_heartbeat_times_out(world: World) -> None:
    start(world, heartbeat_timeout=seconds(1), retry_policy=ONCE)
    task = world.poll_activity()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    outcome(world)


@scenario
def standalone_attempt_times_out(world: World) -> None:
    start(world, start_to_close_timeout=seconds(1), retry_policy=ONCE)
    world.poll_activity()
    outcome(world)


@scenario
def standalone_is_never_taken(world: World) -> None:
    start(world, schedule_to_start_timeout=seconds(1))
    outcome(world)


@scenario
def standalone_is_not_taken_in_all_its_time(world: World) -> None:
    start(world, schedule_to_close_timeout=seconds(1))
    outcome(world)


@scenario
def standalone_runs_out_of_time(world: World) -> None:
    start(world, schedule_to_close_timeout=seconds(1), start_to_close_timeout=seconds(0))
    world.poll_activity()
    outcome(world)


@scenario
def standalone_has_no_time_to_retry(world: World) -> None:
    start(world, schedule_to_close_timeout=seconds(3), retry_policy={"initial_interval": seconds(60)})
    world.fail_activity(world.poll_activity(), failure("first"))
    outcome(world)


def cancel(world: World, name: str = "activity", **fields):
    fields = {"request_id": "cancel", "reason": "enough"} | fields
    return world.attempt("RequestCancelActivityExecution", activity_id=world.id(name), **fields)


@scenario
def standalone_is_canceled_before_it_starts(world: World) -> None:
    start(world)
    cancel(world)
    outcome(world)
    cancel(world)
    cancel(world, request_id="another")


@scenario
def standalone_is_canceled_by_its_worker(world: World) -> None:
    start(world)
    task = world.poll_activity()
    world.attempt("RespondActivityTaskCanceled", task_token=task.task_token, details=payloads("early"))
    cancel(world)
    cancel(world, request_id="another", reason="more")
    describe(world)
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token)
    world.call("RespondActivityTaskCanceled", task_token=task.task_token, details=payloads("gone"))
    outcome(world)


@scenario
def standalone_completes_after_a_cancel(world: World) -> None:
    start(world)
    task = world.poll_activity()
    cancel(world)
    world.finish_activity(task)
    outcome(world)


@scenario
def standalone_fails_after_a_cancel(world: World) -> None:
    start(world)
    task = world.poll_activity()
    cancel(world)
    world.fail_activity(task, failure("late"))
    outcome(world)


@scenario
def standalone_is_canceled_while_it_backs_off(world: World) -> None:
    start(world, retry_policy={"initial_interval": seconds(60)})
    world.fail_activity(world.poll_activity(), failure("first"))
    cancel(world)
    outcome(world)


def terminate(world: World, name: str = "activity", **fields):
    fields = {"request_id": "terminate", "reason": "enough"} | fields
    return world.attempt("TerminateActivityExecution", activity_id=world.id(name), **fields)


@scenario
def standalone_is_terminated(world: World) -> None:
    start(world)
    terminate(world)
    outcome(world)
    terminate(world)
    terminate(world, request_id="another")
    cancel(world)


@scenario
def standalone_is_terminated_at_work(world: World) -> None:
    start(world)
    task = world.poll_activity()
    terminate(world, reason="")
    outcome(world)
    world.attempt("RecordActivityTaskHeartbeat", task_token=task.task_token)
    world.attempt("RespondActivityTaskCompleted", task_token=task.task_token)
    world.attempt("RespondActivityTaskFailed", task_token=task.task_token, failure=failure())
    world.attempt("RespondActivityTaskCanceled", task_token=task.task_token)


@scenario
def standalone_by_its_id(world: World) -> None:
    activity_id = world.id("activity")
    run_id = start(world)
    world.attempt("RecordActivityTaskHeartbeatById", activity_id=activity_id)
    world.poll_activity()
    world.attempt("RecordActivityTaskHeartbeatById", activity_id=activity_id, details=payloads("half"))
    world.attempt("RespondActivityTaskCompletedById", activity_id=activity_id, run_id=run_id, result=payloads("done"))
    outcome(world)
    world.attempt("RespondActivityTaskCompletedById", activity_id=activity_id, result=payloads("again"))
    start(world, "second")
    world.poll_activity()
    world.attempt("RespondActivityTaskFailedById", activity_id=world.id("second"), failure=failure(non_retryable=True))
    outcome(world, "second")
    start(world, "third")
    world.poll_activity()
    cancel(world, "third")
    world.attempt("RespondActivityTaskCanceledById", activity_id=world.id("third"))
    outcome(world, "third")
    start(world, "fourth")
    world.attempt("RespondActivityTaskCompletedById", activity_id=world.id("fourth"), result=payloads("before"))
    describe(world, "fourth")
    world.attempt("RespondActivityTaskCompletedById", activity_id=world.id("nobody"))


@scenario
def standalone_ids_are_used_again(world: World) -> None:
    first = start(world)
    again = fields_of(world)
    world.attempt("StartActivityExecution", **again)
    other = fields_of(world, request_id="other")
    world.attempt("StartActivityExecution", **other)
    use_existing = {"id_conflict_policy": "ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING"}
    world.attempt("StartActivityExecution", **(other | use_existing))
    world.finish_activity(world.poll_activity())
    world.attempt("StartActivityExecution", **again)
    reject = {"id_reuse_policy": "ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE"}
    failed_only = {"id_reuse_policy": "ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY"}
    world.attempt("StartActivityExecution", **(other | reject))
    world.attempt("StartActivityExecution", **(other | failed_only))
    second = world.call("StartActivityExecution", **other).run_id
    world.fail_activity(world.poll_activity(), failure(non_retryable=True))
    third = world.call("StartActivityExecution", **(other | failed_only | {"request_id": "third"})).run_id
    describe(world, run_id=first, include_input=False)
    describe(world, run_id=second, include_input=False)
    describe(world, run_id=third, include_input=False)
    terminate(world)


@scenario
def standalone_is_described_when_it_changes(world: World) -> None:
    run_id = start(world)
    now = describe(world)
    waiting = world.later(
        "DescribeActivityExecution",
        activity_id=world.id("activity"),
        run_id=run_id,
        long_poll_token=now.long_poll_token,
    )
    task = world.poll_activity()
    waiting.answer()
    world.finish_activity(task)
    outcome(world, run_id=run_id)
    world.attempt(
        "DescribeActivityExecution",
        activity_id=world.id("activity"),
        run_id=run_id,
        long_poll_token=now.long_poll_token,
    )


@scenario
def standalone_waits_for_its_time(world: World) -> None:
    start(world, start_delay=seconds(2), schedule_to_close_timeout=seconds(100))
    describe(world)
    world.finish_activity(world.poll_activity())
    outcome(world)


@scenario
def standalone_is_deleted(world: World) -> None:
    start(world)
    world.finish_activity(world.poll_activity())
    world.call("DeleteActivityExecution", activity_id=world.id("activity"))
    world.wait_s(2)
    world.attempt("DescribeActivityExecution", activity_id=world.id("activity"))
    world.attempt("DeleteActivityExecution", activity_id=world.id("activity"))


@scenario
def standalone_is_not_found(world: World) -> None:
    nobody = {"activity_id": world.id("nobody")}
    some_run = nobody | {"run_id": "0c9d2d1f-3a7e-4b6b-9d5c-0f6e5d4c3b2a"}
    for rpc in (
        "DescribeActivityExecution",
        "PollActivityExecution",
        "RequestCancelActivityExecution",
        "TerminateActivityExecution",
        "DeleteActivityExecution",
    ):
        world.attempt(rpc, **nobody)
        world.attempt(rpc, **some_run)
        world.attempt(rpc, activity_id=world.id("nobody"), run_id="no uuid")
        world.attempt(rpc)
        world.attempt(rpc, activity_id="a" * 1001)


@scenario
def standalone_bad_starts(world: World) -> None:
    for wrong in (
        {"activity_id": ""},
        {"activity_id": "a" * 1001},
        {"activity_type": {}},
        {"activity_type": {"name": "t" * 1001}},
        {"task_queue": {}},
        {"task_queue": {"name": "q" * 1001}},
        {"task_queue": {"name": "/_sys/q"}},
        {"start_to_close_timeout": seconds(0)},
        {"start_to_close_timeout": seconds(-1)},
        {"schedule_to_close_timeout": seconds(-1)},
        {"schedule_to_start_timeout": seconds(-1)},
        {"heartbeat_timeout": seconds(-1)},
        {"start_delay": seconds(-1)},
        {"retry_policy": {"backoff_coefficient": 0.5}},
        {"retry_policy": {"maximum_attempts": -1}},
        {"priority": {"priority_key": -1}},
        {"priority": {"fairness_key": "k" * 65}},
        {"request_id": "r" * 1001},
        {"identity": "i" * 1001},
        {"input": payloads("x" * (2 << 20))},
        {"user_metadata": {"summary": payload("x" * 500)}},
        {"search_attributes": {"indexed_fields": {"Unknown": payload("x")}}},
        {"id_reuse_policy": 77},
        {"id_conflict_policy": 77},
        {"completion_callbacks": [{"nexus": {"url": "http://localhost"}}]},
        {"on_conflict_options": {"attach_request_id": True}},
        {"namespace": ""},
    ):
        world.attempt("StartActivityExecution", **(fields_of(world) | wrong))


@scenario
def standalone_and_a_workflow_of_the_same_id(world: World) -> None:
    start(world, "same")
    world.start("same")
    world.describe("same")
    describe(world, "same")
    terminate(world, "same")
    world.terminate("same")


@scenario
def standalone_is_closed(world: World) -> None:
    for name in ("completed", "failed"):
        names = {"activity_id": world.id(name)}
        start(world, name)
        task = world.poll_activity()
        if name == "completed":
            world.finish_activity(task)
        else:
            world.fail_activity(task, failure(non_retryable=True))
        cancel(world, name)
        terminate(world, name)
        terminate(world, name, request_id="")
        world.attempt("RecordActivityTaskHeartbeatById", **names)
        world.attempt("RespondActivityTaskFailedById", **names, failure=failure())
        world.attempt("RespondActivityTaskCanceledById", **names)
        world.attempt("RespondActivityTaskFailed", task_token=task.task_token, failure=failure())


@scenario
def standalone_times_out_between_attempts(world: World) -> None:
    start(world, schedule_to_close_timeout=seconds(3), retry_policy={"initial_interval": seconds(2)})
    world.fail_activity(world.poll_activity(), failure("first"))
    world.poll_activity()
    outcome(world)


@scenario
def standalone_attempt_times_out_without_time_left(world: World) -> None:
    start(
        world,
        schedule_to_close_timeout=seconds(3),
        start_to_close_timeout=seconds(1),
        retry_policy={"initial_interval": seconds(60)},
    )
    world.poll_activity()
    outcome(world)


@scenario
def standalone_is_stopped_without_a_word(world: World) -> None:
    for name in ("before", "at work"):
        start(world, name)
        if name == "at work":
            world.poll_activity()
        cancel(world, name, reason="", request_id="", identity="")
        cancel(world, name, reason="", request_id="", identity="")
        describe(world, name)
        terminate(world, name, reason="", request_id="", identity="")
        describe(world, name)


@scenario
def standalone_old_attempt_answers(world: World) -> None:
    start(world, retry_policy={"initial_interval": seconds(1)})
    old = world.poll_activity()
    world.fail_activity(old, failure("first"))
    world.attempt("RecordActivityTaskHeartbeat", task_token=old.task_token)
    world.poll_activity()
    world.attempt("RespondActivityTaskCompleted", task_token=old.task_token)
    terminate(world)


@scenario
def standalone_is_deleted_at_work(world: World) -> None:
    start(world)
    task = world.poll_activity()
    world.call("DeleteActivityExecution", activity_id=world.id("activity"))
    world.wait_s(2)
    world.attempt("DescribeActivityExecution", activity_id=world.id("activity"))
    world.attempt("RespondActivityTaskCompleted", task_token=task.task_token)


@scenario
def standalone_bad_long_polls(world: World) -> None:
    run_id = start(world)
    names = {"activity_id": world.id("activity")}
    token = describe(world).long_poll_token
    world.attempt("DescribeActivityExecution", **names, long_poll_token=token)
    world.attempt("DescribeActivityExecution", **names, run_id=run_id, long_poll_token=b"nonsense")
    terminate(world)


@scenario
def standalone_stops_are_checked(world: World) -> None:
    start(world)
    for rpc in ("RequestCancelActivityExecution", "TerminateActivityExecution"):
        for wrong in ({"request_id": "r" * 1001}, {"identity": "i" * 1001}):
            world.attempt(rpc, activity_id=world.id("activity"), **wrong)
    describe(world)


@scenario
def standalone_start_delay_is_ended(world: World) -> None:
    start(world, start_delay=seconds(60))
    cancel(world)
    outcome(world)
