"""What every method says about namespaces, tokens and fields that are missing."""

from __future__ import annotations

from payload import complete_workflow, failure, schedule_activity
from registry import scenario
from world import World

UNKNOWN = "11111111-2222-3333-4444-555555555555"


def full_requests(world: World) -> dict[str, dict]:
    """A request for every method of a workflow that only its namespace can spoil."""
    execution, queue = world.execution(), {"name": world.queue}
    by_id = {"workflow_id": world.id(), "activity_id": "activity"}
    return {
        "StartWorkflowExecution": world.start_fields(),
        "SignalWithStartWorkflowExecution": world.start_fields() | {"signal_name": "s"},
        "SignalWorkflowExecution": {"workflow_execution": execution, "signal_name": "s"},
        "RequestCancelWorkflowExecution": {"workflow_execution": execution},
        "TerminateWorkflowExecution": {"workflow_execution": execution},
        "QueryWorkflow": {"execution": execution, "query": {"query_type": "q"}},
        "DescribeWorkflowExecution": {"execution": execution},
        "GetWorkflowExecutionHistory": {"execution": execution},
        "GetWorkflowExecutionHistoryReverse": {"execution": execution},
        "ResetStickyTaskQueue": {"execution": execution},
        "PollWorkflowTaskQueue": {"task_queue": queue},
        "PollActivityTaskQueue": {"task_queue": queue},
        "DescribeTaskQueue": {"task_queue": queue},
        "ListTaskQueuePartitions": {"task_queue": queue},
        "ShutdownWorker": {"sticky_task_queue": world.queue},
        "RespondActivityTaskCompletedById": by_id,
        "RespondActivityTaskFailedById": by_id | {"failure": failure()},
        "RespondActivityTaskCanceledById": by_id,
        "RecordActivityTaskHeartbeatById": by_id,
        "DescribeNamespace": {},
        "UpdateNamespace": {},
        "DeprecateNamespace": {},
    }


@scenario
def namespace_is_unknown(world: World) -> None:
    for rpc, fields in full_requests(world).items():
        world.attempt(rpc, namespace="nobody", **fields)


@scenario
def namespace_is_missing(world: World) -> None:
    for rpc, fields in full_requests(world).items():
        world.attempt(rpc, namespace="", **fields)


@scenario
def workflow_is_unknown(world: World) -> None:
    for rpc, fields in full_requests(world).items():
        if "xecution" in str(fields.keys()) or "activity_id" in fields:
            world.attempt(rpc, **fields)
        if "workflow_id" in fields.get("execution", {}):
            world.attempt(rpc, **fields | {"execution": world.execution(run_id=UNKNOWN)})
        if "workflow_id" in fields.get("workflow_execution", {}):
            world.attempt(rpc, **fields | {"workflow_execution": world.execution(run_id=UNKNOWN)})


@scenario
def request_is_empty(world: World) -> None:
    for rpc in full_requests(world):
        if not rpc.startswith(("Poll", "DescribeNamespace", "UpdateNamespace", "DeprecateNamespace")):
            world.attempt(rpc)


@scenario
def request_names_are_too_long(world: World) -> None:
    long = "x" * 1001
    execution = {"workflow_id": long}
    for rpc, fields in full_requests(world).items():
        if "execution" in fields and rpc != "QueryWorkflow":
            world.attempt(rpc, **fields | {"execution": execution})
        if "workflow_execution" in fields:
            world.attempt(rpc, **fields | {"workflow_execution": execution})
        if "activity_id" in fields:
            world.attempt(rpc, **fields | {"activity_id": long})
            world.attempt(rpc, **fields | {"workflow_id": long})
            world.attempt(rpc, **fields | {"activity_id": ""})
            world.attempt(rpc, **fields | {"run_id": "not a uuid"})


BY_TOKEN = (
    "RespondWorkflowTaskCompleted",
    "RespondWorkflowTaskFailed",
    "RespondActivityTaskCompleted",
    "RespondActivityTaskFailed",
    "RespondActivityTaskCanceled",
    "RecordActivityTaskHeartbeat",
    "RespondQueryTaskCompleted",
)


@scenario
def token_is_no_token(world: World) -> None:
    for rpc in BY_TOKEN:
        world.attempt(rpc)
        world.attempt(rpc, task_token=b"garbage")


@scenario
def token_of_another_kind(world: World) -> None:
    world.start()
    task = world.turn(schedule_activity())
    activity = world.poll_activity()
    for rpc in BY_TOKEN:
        world.attempt(rpc, task_token=(activity if "Workflow" in rpc else task).task_token)
    world.terminate()


@scenario
def token_of_another_namespace(world: World) -> None:
    other = f"{world.queue}-other"
    world.call("RegisterNamespace", namespace=other, workflow_execution_retention_period={"seconds": 86400})
    world.start()
    world.turn(schedule_activity())
    activity = world.poll_activity()
    world.signal("go")
    task = world.poll()
    world.wait_until_known(other)
    for rpc in BY_TOKEN[:-1]:
        world.attempt(rpc, namespace=other, task_token=(task if "Workflow" in rpc else activity).task_token)
        world.attempt(rpc, namespace="nobody", task_token=(task if "Workflow" in rpc else activity).task_token)
    # Old workers leave it out: the token says enough.
    world.call("RespondActivityTaskCompleted", namespace="", task_token=activity.task_token)
    world.call("RespondWorkflowTaskCompleted", namespace="", **world.completion(task))
    world.turn(complete_workflow())
