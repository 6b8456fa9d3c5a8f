"""Starting workflows: options, ids that are taken, and what is refused."""

from __future__ import annotations

from payload import cancel_workflow, complete_workflow, fail_workflow, payload, payloads, seconds
from registry import scenario
from world import World

REUSE = "WORKFLOW_ID_REUSE_POLICY_"
CONFLICT = "WORKFLOW_ID_CONFLICT_POLICY_"


@scenario
def start_with_every_option(world: World) -> None:
    world.start(
        workflow_execution_timeout=seconds(100),
        workflow_run_timeout=seconds(90),
        workflow_task_timeout=seconds(8),
        workflow_id_reuse_policy=f"{REUSE}REJECT_DUPLICATE",
        workflow_id_conflict_policy=f"{CONFLICT}USE_EXISTING",
        retry_policy={"initial_interval": seconds(2), "non_retryable_error_types": ["Fatal"]},
        memo={"fields": {"m": payload(1)}},
        search_attributes={"indexed_fields": {"TemporalChangeVersion": payload(["a"])}},
        header={"fields": {"trace": payload("t")}},
        user_metadata={"summary": payload("sum"), "details": payload("det")},
        links=[{"workflow_event": {"namespace": "n", "workflow_id": "w", "run_id": "r"}}],
        priority={"priority_key": 2, "fairness_key": "tenant", "fairness_weight": 2},
        identity="starter",
    )
    world.describe()
    world.turn(complete_workflow())


@scenario
def start_without_a_request_id(world: World) -> None:
    world.start(request_id="", identity="")
    world.terminate()


@scenario
def start_again_with_the_same_request(world: World) -> None:
    world.start()
    world.start()
    world.turn(complete_workflow())
    world.start()
    world.start(request_id="another")
    world.terminate()


@scenario
def start_while_running(world: World) -> None:
    world.start()
    for policy in ("UNSPECIFIED", "FAIL", "USE_EXISTING"):
        fields = world.start_fields(request_id=policy, workflow_id_conflict_policy=f"{CONFLICT}{policy}")
        world.attempt("StartWorkflowExecution", **fields)
    for policy in ("ALLOW_DUPLICATE", "ALLOW_DUPLICATE_FAILED_ONLY", "REJECT_DUPLICATE"):
        fields = world.start_fields(request_id=policy, workflow_id_reuse_policy=f"{REUSE}{policy}")
        world.attempt("StartWorkflowExecution", **fields)
    fields = world.start_fields(request_id="t", workflow_id_conflict_policy=f"{CONFLICT}TERMINATE_EXISTING")
    world.call("StartWorkflowExecution", **fields)
    fields = world.start_fields(request_id="r", workflow_id_reuse_policy=f"{REUSE}TERMINATE_IF_RUNNING")
    world.call("StartWorkflowExecution", **fields)
    world.turn(complete_workflow())


@scenario
def start_terminates_a_run_with_a_task(world: World) -> None:
    world.start()
    world.poll()
    world.signal("one")
    world.start(request_id="t", workflow_id_conflict_policy=f"{CONFLICT}TERMINATE_EXISTING")
    world.turn(complete_workflow())


@scenario
def start_attaches_to_a_run(world: World) -> None:
    world.start()
    fields = world.start_fields(request_id="other", workflow_id_conflict_policy=f"{CONFLICT}USE_EXISTING")
    options = {"attach_request_id": True, "attach_links": True}
    world.attempt("StartWorkflowExecution", on_conflict_options=options, **fields)
    world.attempt("StartWorkflowExecution", on_conflict_options={"attach_completion_callbacks": True}, **fields)
    world.terminate()


@scenario
def start_after_the_end(world: World) -> None:
    for name, closing in {
        "completed": complete_workflow(),
        "failed": fail_workflow(),
        "cancelled": cancel_workflow(),
    }.items():
        world.start(name)
        world.turn(closing)
        for policy in ("REJECT_DUPLICATE", "ALLOW_DUPLICATE_FAILED_ONLY", "ALLOW_DUPLICATE"):
            fields = world.start_fields(name, request_id=policy, workflow_id_reuse_policy=f"{REUSE}{policy}")
            world.attempt("StartWorkflowExecution", **fields)
        world.terminate(name)


@scenario
def start_with_policies_that_disagree(world: World) -> None:
    for reuse, conflict in (
        ("TERMINATE_IF_RUNNING", "FAIL"),
        ("TERMINATE_IF_RUNNING", "USE_EXISTING"),
        ("REJECT_DUPLICATE", "TERMINATE_EXISTING"),
        ("REJECT_DUPLICATE", "USE_EXISTING"),
    ):
        policies = {"workflow_id_reuse_policy": f"{REUSE}{reuse}", "workflow_id_conflict_policy": f"{CONFLICT}{conflict}"}
        world.attempt("StartWorkflowExecution", **world.start_fields(f"{reuse}-{conflict}".lower(), **policies))


BAD_STARTS = {
    "id": {"workflow_id": ""},
    "long-id": {"workflow_id": "x" * 1001},
    "type": {"workflow_type": None},
    "empty-type": {"workflow_type": {}},
    "long-type": {"workflow_type": {"name": "x" * 1001}},
    "queue": {"task_queue": None},
    "empty-queue": {"task_queue": {}},
    "long-queue": {"task_queue": {"name": "x" * 1001}},
    "reserved-queue": {"task_queue": {"name": "/_sys/x/1"}},
    "sticky-queue": {"task_queue": {"name": "q", "kind": "TASK_QUEUE_KIND_STICKY"}},
    "long-request": {"request_id": "x" * 1001},
    "execution-timeout": {"workflow_execution_timeout": {"seconds": -1}},
    "run-timeout": {"workflow_run_timeout": {"seconds": -1}},
    "task-timeout": {"workflow_task_timeout": {"seconds": -1}},
    "mixed-timeout": {"workflow_run_timeout": {"seconds": 1, "nanos": -1}},
    "delay": {"workflow_start_delay": {"seconds": -1}},
    "cron": {"cron_schedule": "never"},
    "cron-numbers": {"cron_schedule": "61 * * * *"},
    "cron-and-delay": {"cron_schedule": "@every 1s", "workflow_start_delay": {"seconds": 1}},
    "coefficient": {"retry_policy": {"backoff_coefficient": 0.5}},
    "initial": {"retry_policy": {"initial_interval": {"seconds": -1}}},
    "maximum": {"retry_policy": {"maximum_interval": {"seconds": -1}}},
    "intervals": {"retry_policy": {"initial_interval": {"seconds": 2}, "maximum_interval": {"seconds": 1}}},
    "attempts": {"retry_policy": {"maximum_attempts": -1}},
    "timeout-type": {"retry_policy": {"non_retryable_error_types": ["TemporalTimeout:Never"]}},
    "priority": {"priority": {"priority_key": -1}},
    "high-priority": {"priority": {"priority_key": 9}},
    "fairness-key": {"priority": {"fairness_key": "x" * 65}},
    "fairness-weight": {"priority": {"fairness_weight": -1}},
    "attribute": {"search_attributes": {"indexed_fields": {"Nobody": payload("x")}}},
    "system-attribute": {"search_attributes": {"indexed_fields": {"WorkflowId": payload("x")}}},
    "attribute-type": {"search_attributes": {"indexed_fields": {"TemporalSchedulePaused": payload("maybe")}}},
    "attribute-size": {"search_attributes": {"indexed_fields": {"TemporalChangeVersion": payload(["x" * 3000])}}},
    "input": {"input": payloads("x" * (2 * 1024 * 1024 + 1))},
    "memo": {"memo": {"fields": {"m": payload("x" * (2 * 1024 * 1024 + 1))}}},
    "summary": {"user_metadata": {"summary": payload("x" * 1000)}},
    "details": {"user_metadata": {"details": payload("x" * 30000)}},
    "links": {"links": [{"workflow_event": {"namespace": "n", "workflow_id": "w", "run_id": "r"}}] * 11},
    "large-link": {"links": [{"workflow_event": {"namespace": "n", "workflow_id": "w" * 5000, "run_id": "r"}}]},
    "empty-link": {"links": [{}]},
    "identity": {"identity": "x" * 1001},
    "callback": {"completion_callbacks": [{"nexus": {"url": "http://localhost/"}}]},
    "years": {"workflow_run_timeout": {"seconds": 200 * 366 * 86400}},
}


@scenario
def bad_starts(world: World) -> None:
    for name, bad in BAD_STARTS.items():
        world.attempt("StartWorkflowExecution", **world.start_fields(name, **bad))


@scenario
def bad_starts_with_a_signal(world: World) -> None:
    for name in ("id", "type", "queue", "cron", "attempts", "attribute", "input", "delay", "cron-and-delay", "priority"):
        fields = world.start_fields(name, **BAD_STARTS[name])
        world.attempt("SignalWithStartWorkflowExecution", signal_name="hello", **fields)
    world.attempt("SignalWithStartWorkflowExecution", **world.start_fields("name"))
    world.attempt("SignalWithStartWorkflowExecution", signal_name="x" * 1001, **world.start_fields("long-name"))
    large = payloads("x" * (2 * 1024 * 1024 + 1))
    world.attempt("SignalWithStartWorkflowExecution", signal_name="s", signal_input=large, **world.start_fields("large"))
