"""Reading histories, descriptions and task queues."""

from __future__ import annotations

from payload import complete_workflow, continue_as_new, record_marker, schedule_activity, seconds, start_timer
from registry import scenario
from world import Refusal, World

CLOSE = "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT"


def long_history(world: World) -> str:
    run_id = world.start()
    for number in range(3):
        world.turn(record_marker("one"), record_marker("two"))
        world.signal(f"signal-{number}")
    world.turn(complete_workflow())
    return run_id


def read_pages(world: World, rpc: str, **fields) -> None:
    for _ in world.pages(rpc, execution=world.execution(), **fields):
        pass


@scenario
def history_in_pages(world: World) -> None:
    long_history(world)
    for size in (1, 3, 100):
        read_pages(world, "GetWorkflowExecutionHistory", maximum_page_size=size)


@scenario
def history_backwards(world: World) -> None:
    long_history(world)
    for size in (0, 2, 100):
        read_pages(world, "GetWorkflowExecutionHistoryReverse", maximum_page_size=size)


@scenario
def history_of_an_open_run(world: World) -> None:
    world.start()
    world.call("GetWorkflowExecutionHistory", execution=world.execution())
    world.call("GetWorkflowExecutionHistoryReverse", execution=world.execution())
    first = world.call("GetWorkflowExecutionHistory", execution=world.execution(), wait_new_event=True)
    fields = {"execution": world.execution(), "wait_new_event": True}
    waiting = world.later("GetWorkflowExecutionHistory", next_page_token=first.next_page_token, **fields)
    task = world.poll()
    more = waiting.answer()
    waiting = world.later("GetWorkflowExecutionHistory", next_page_token=more.next_page_token, **fields)
    world.complete(task, complete_workflow())
    waiting.answer()


@scenario
def history_until_the_end(world: World) -> None:
    world.start()
    fields = {"execution": world.execution(), "wait_new_event": True, "history_event_filter_type": CLOSE}
    waiting = world.later("GetWorkflowExecutionHistory", **fields)
    world.turn(start_timer(after_s=1))
    world.turn(complete_workflow())
    waiting.answer()
    world.call("GetWorkflowExecutionHistory", execution=world.execution(), history_event_filter_type=CLOSE)
    world.call("GetWorkflowExecutionHistory", **fields)


@scenario
def history_until_the_end_of_a_chain(world: World) -> None:
    run_id = world.start()
    fields = {"wait_new_event": True, "history_event_filter_type": CLOSE}
    waiting = world.later("GetWorkflowExecutionHistory", execution=world.execution(run_id=run_id), **fields)
    world.turn(continue_as_new())
    waiting.answer()
    world.turn(complete_workflow())
    world.call("GetWorkflowExecutionHistory", execution=world.execution(), **fields)


@scenario
def history_in_pages_of_an_open_run(world: World) -> None:
    world.start()
    for number in range(2):
        world.turn(record_marker("one"))
        world.signal(f"signal-{number}")
    read_pages(world, "GetWorkflowExecutionHistory", maximum_page_size=2)
    read_pages(world, "GetWorkflowExecutionHistoryReverse", maximum_page_size=2)
    world.terminate()


@scenario
def bad_reads(world: World) -> None:
    run_id = world.start()
    world.turn(record_marker())
    other = "11111111-2222-3333-4444-555555555555"
    page = world.call("GetWorkflowExecutionHistory", execution=world.execution(), maximum_page_size=1)
    for rpc in ("GetWorkflowExecutionHistory", "GetWorkflowExecutionHistoryReverse", "DescribeWorkflowExecution"):
        for execution in (
            None,
            {},
            {"run_id": run_id},
            {"workflow_id": "x" * 1001},
            world.execution("nobody"),
            world.execution(run_id="not a uuid"),
            world.execution(run_id=other),
            world.execution("nobody", run_id=run_id),
        ):
            world.attempt(rpc, execution=execution)
    for rpc in ("GetWorkflowExecutionHistory", "GetWorkflowExecutionHistoryReverse"):
        world.attempt(rpc, execution=world.execution(), next_page_token=b"garbage")
    world.attempt(
        "GetWorkflowExecutionHistory", execution=world.execution(run_id=other), next_page_token=page.next_page_token
    )
    world.terminate()


@scenario
def description_at_every_stage(world: World) -> None:
    world.start(workflow_run_timeout=seconds(100))
    world.describe()
    task = world.poll()
    world.describe()
    world.complete(task, schedule_activity(), start_timer(after_s=60))
    world.describe()
    world.request_cancel()
    world.describe()
    world.turn(complete_workflow())


# ---- task queues ---------------------------------------------------------------------------------


@scenario
def queue_that_nobody_uses(world: World) -> None:
    for kind in ("UNSPECIFIED", "WORKFLOW", "ACTIVITY", "NEXUS"):
        fields = {"task_queue": {"name": world.queue}, "task_queue_type": f"TASK_QUEUE_TYPE_{kind}"}
        world.attempt("DescribeTaskQueue", **fields)
        world.attempt("DescribeTaskQueue", include_task_queue_status=True, **fields)
        world.attempt("DescribeTaskQueue", report_stats=True, report_config=True, **fields)


@scenario
def queue_with_a_poller(world: World) -> None:
    world.start()
    world.turn(schedule_activity(), identity="somebody")
    world.poll_activity(identity="somebody")
    for kind in ("WORKFLOW", "ACTIVITY"):
        world.call("DescribeTaskQueue", task_queue={"name": world.queue}, task_queue_type=f"TASK_QUEUE_TYPE_{kind}")
    world.terminate()


@scenario
def queue_partitions(world: World) -> None:
    world.call("ListTaskQueuePartitions", task_queue={"name": world.queue})
    world.attempt("ListTaskQueuePartitions", task_queue={})
    world.attempt("ListTaskQueuePartitions")


@scenario
def queue_limits(world: World) -> None:
    fields = {"task_queue": world.queue, "task_queue_type": "TASK_QUEUE_TYPE_ACTIVITY"}
    update = {"rate_limit": {"requests_per_second": 5}, "reason": "busy"}
    world.attempt("UpdateTaskQueueConfig", update_queue_rate_limit=update, **fields)
    world.attempt("UpdateTaskQueueConfig", update_fairness_key_rate_limit_default=update, **fields)
    world.attempt("UpdateTaskQueueConfig", set_fairness_weight_overrides={"tenant": 2.5}, **fields)
    config = {"task_queue": {"name": world.queue}, "task_queue_type": "TASK_QUEUE_TYPE_ACTIVITY", "report_config": True}
    world.attempt("DescribeTaskQueue", **config)
    world.attempt("UpdateTaskQueueConfig", update_queue_rate_limit={"reason": "calm"}, **fields)
    world.attempt("UpdateTaskQueueConfig", unset_fairness_weight_overrides=["tenant"], **fields)
    world.attempt("DescribeTaskQueue", **config)
    world.attempt("UpdateTaskQueueConfig", **fields)
    world.attempt("UpdateTaskQueueConfig", update_queue_rate_limit=update)
    world.attempt("UpdateTaskQueueConfig", update_queue_rate_limit=update, task_queue=world.queue)
    negative = {"rate_limit": {"requests_per_second": -1}}
    world.attempt("UpdateTaskQueueConfig", update_queue_rate_limit=negative, **fields)
    overlap = {"set_fairness_weight_overrides": {"a": 1}, "unset_fairness_weight_overrides": ["a"]}
    world.attempt("UpdateTaskQueueConfig", **overlap, **fields)
    world.attempt("UpdateTaskQueueConfig", set_fairness_weight_overrides={"a": -1}, **fields)


@scenario
def bad_queues(world: World) -> None:
    for queue in (None, {}, {"name": "x" * 1001}, {"name": "/_sys/x/1"}):
        for rpc in ("DescribeTaskQueue", "PollWorkflowTaskQueue", "PollActivityTaskQueue"):
            answer = world.later(rpc, timeout_s=4, task_queue=queue).answer()
            assert isinstance(answer, Refusal) or not getattr(answer, "task_token", b"")
