"""Commands that cannot be carried out: the workflow task fails, with a cause and a text."""

from __future__ import annotations

from payload import (
    cancel_activity,
    cancel_external,
    cancel_timer,
    command,
    complete_workflow,
    continue_as_new,
    payload,
    payloads,
    record_marker,
    schedule_activity,
    seconds,
    signal_external,
    start_child,
    start_timer,
)
from registry import scenario
from world import World

LONG = "x" * 1001


def refuse(world: World, bad: dict) -> None:
    """Each command in a run of its own: the task fails, and its next attempt ends the run."""
    for name, commands in bad.items():
        world.start(name)
        commands = commands if isinstance(commands, list) else [commands]
        world.attempt("RespondWorkflowTaskCompleted", **world.completion(world.poll(), *commands))
        world.attempt("GetWorkflowExecutionHistory", execution=world.execution(name))
        world.terminate(name)


@scenario
def bad_activities(world: World) -> None:
    no_time = {"schedule_to_close_timeout": None}
    refuse(
        world,
        {
            "no-id": schedule_activity(""),
            "long-id": schedule_activity(LONG),
            "no-type": schedule_activity(activity_type=None),
            "long-type": schedule_activity(activity_type={"name": LONG}),
            "no-queue": schedule_activity(task_queue={}),
            "long-queue": schedule_activity(task_queue={"name": LONG}),
            "reserved-queue": schedule_activity(task_queue={"name": "/_sys/x/1"}),
            "no-timeout": schedule_activity(**no_time),
            "negative": schedule_activity(schedule_to_close_timeout={"seconds": -1}),
            "negative-heartbeat": schedule_activity(heartbeat_timeout={"seconds": -1}),
            "coefficient": schedule_activity(retry_policy={"backoff_coefficient": 0.5}),
            "interval": schedule_activity(
                retry_policy={"initial_interval": seconds(2), "maximum_interval": seconds(1)}
            ),
            "attempts": schedule_activity(retry_policy={"maximum_attempts": -1}),
            "negative-interval": schedule_activity(retry_policy={"initial_interval": {"seconds": -1}}),
            "timeout-name": schedule_activity(retry_policy={"non_retryable_error_types": ["TemporalTimeout:Never"]}),
            "priority": schedule_activity(priority={"priority_key": -1}),
            "fairness": schedule_activity(priority={"fairness_key": "x" * 65}),
            "no-attributes": command("SCHEDULE_ACTIVITY_TASK"),
        },
    )


@scenario
def bad_activity_ids(world: World) -> None:
    refuse(
        world,
        {
            "twice": [schedule_activity(), schedule_activity()],
            "cancel-nothing": cancel_activity(0),
            "cancel-unknown": cancel_activity(99),
            "cancel-twice": [schedule_activity(), cancel_activity(5), cancel_activity(5)],
        },
    )


@scenario
def bad_timers(world: World) -> None:
    refuse(
        world,
        {
            "no-id": start_timer(""),
            "long-id": start_timer(LONG),
            "negative": start_timer(after_s=-1),
            "twice": [start_timer(after_s=60), start_timer(after_s=60)],
            "cancel-no-id": cancel_timer(""),
            "cancel-long-id": cancel_timer(LONG),
            "cancel-unknown": cancel_timer("nobody"),
        },
    )


@scenario
def bad_small_commands(world: World) -> None:
    unknown = {"indexed_fields": {"Nobody": payload("x")}}
    system = {"indexed_fields": {"StartTime": payload("2024-01-02T03:04:05Z")}}
    mistyped = {"indexed_fields": {"TemporalSchedulePaused": payload("maybe")}}
    upsert = "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES"
    refuse(
        world,
        {
            "no-marker": record_marker(""),
            "long-marker": record_marker(LONG),
            "no-attributes": command(upsert),
            "unknown-attribute": command(upsert, search_attributes=unknown),
            "system-attribute": command(upsert, search_attributes=system),
            "mistyped-attribute": command(upsert, search_attributes=mistyped),
            "no-memo": command("MODIFY_WORKFLOW_PROPERTIES"),
            "no-failure": command("FAIL_WORKFLOW_EXECUTION"),
            "nexus": command("SCHEDULE_NEXUS_OPERATION", endpoint="e", service="s", operation="o"),
            "cancel-nexus": command("REQUEST_CANCEL_NEXUS_OPERATION", scheduled_event_id=3),
            "message": command("PROTOCOL_MESSAGE", message_id="nobody"),
            "no-message": command("PROTOCOL_MESSAGE"),
        },
    )


@scenario
def bad_continuations(world: World) -> None:
    unknown = {"indexed_fields": {"Nobody": payload("x")}}
    refuse(
        world,
        {
            "long-type": continue_as_new(workflow_type={"name": LONG}),
            "long-queue": continue_as_new(task_queue={"name": LONG}),
            "reserved-queue": continue_as_new(task_queue={"name": "/_sys/x/1"}),
            "negative-run": continue_as_new(workflow_run_timeout={"seconds": -1}),
            "negative-task": continue_as_new(workflow_task_timeout={"seconds": -1}),
            "negative-backoff": continue_as_new(backoff_start_interval={"seconds": -1}),
            "attributes": continue_as_new(search_attributes=unknown),
            "retry": continue_as_new(retry_policy={"maximum_attempts": -1}),
            "cron": continue_as_new(cron_schedule="never"),
        },
    )


@scenario
def bad_children(world: World) -> None:
    unknown = {"indexed_fields": {"Nobody": payload("x")}}
    refuse(
        world,
        {
            "no-id": start_child(""),
            "long-id": start_child(LONG),
            "no-type": start_child("child", workflow_type=None),
            "long-type": start_child("child", workflow_type={"name": LONG}),
            "long-queue": start_child("child", task_queue={"name": LONG}),
            "namespace": start_child("child", namespace="nobody"),
            "negative-execution": start_child("child", workflow_execution_timeout={"seconds": -1}),
            "negative-run": start_child("child", workflow_run_timeout={"seconds": -1}),
            "negative-task": start_child("child", workflow_task_timeout={"seconds": -1}),
            "cron": start_child("child", cron_schedule="never"),
            "retry": start_child("child", retry_policy={"backoff_coefficient": 0.5}),
            "attributes": start_child("child", search_attributes=unknown),
            "priority": start_child("child", priority={"priority_key": -1}),
        },
    )


@scenario
def bad_letters(world: World) -> None:
    run = {"workflow_id": "target", "run_id": "not a uuid"}
    refuse(
        world,
        {
            "signal-no-id": signal_external(""),
            "signal-long-id": signal_external(LONG),
            "signal-no-name": signal_external("target", signal_name=""),
            "signal-long-name": signal_external("target", signal_name=LONG),
            "signal-run": signal_external("target", execution=run),
            "signal-namespace": signal_external("target", namespace="nobody"),
            "signal-nobody": signal_external("target", execution=None),
            "cancel-no-id": cancel_external(""),
            "cancel-long-id": cancel_external(LONG),
            "cancel-run": cancel_external("target", run_id="not a uuid"),
            "cancel-namespace": cancel_external("target", namespace="nobody"),
            "cancel-new-child": [start_child("target"), cancel_external("target")],
        },
    )


@scenario
def bad_sequences(world: World) -> None:
    refuse(
        world,
        {
            "closing-first": [complete_workflow(), record_marker()],
            "two-closing": [complete_workflow(), complete_workflow()],
            "unknown": _unknown(),
        },
    )


def _unknown():
    made = record_marker()
    made.command_type = 0
    return made


@scenario
def bad_commands_on_a_second_attempt(world: World) -> None:
    world.start()
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(world.poll(), start_timer("")))
    task = world.poll()
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, record_marker(), start_timer("")))
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, record_marker(), cancel_timer("x")))
    world.complete(task, complete_workflow())


@scenario
def commands_that_are_too_large(world: World) -> None:
    large = payloads("x" * (2 * 1024 * 1024 + 1))
    for name, bad in {
        "result": command("COMPLETE_WORKFLOW_EXECUTION", result=large),
        "activity": schedule_activity(input=large),
        "marker": record_marker(details={"data": large}),
        "continue": continue_as_new(input=large),
        "child": start_child("child", input=large),
        "signal": signal_external("target", input=large),
        "memo": command("MODIFY_WORKFLOW_PROPERTIES", upserted_memo={"fields": {"large": large.payloads[0]}}),
        "attribute": command(
            "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
            search_attributes={"indexed_fields": {"TemporalChangeVersion": payload(["x" * 3000])}},
        ),
    }.items():
        world.start(name)
        world.attempt("RespondWorkflowTaskCompleted", **world.completion(world.poll(), bad))
        world.attempt("TerminateWorkflowExecution", workflow_execution=world.execution(name))
