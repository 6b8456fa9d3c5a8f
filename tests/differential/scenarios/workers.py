"""What workers say of themselves, and what is told of them."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from payload import seconds
from registry import scenario
from world import World

BEGAN = Timestamp(seconds=1_700_000_000)


def heartbeat(world: World, name: str = "worker", **fields) -> dict:
    return {
        "worker_instance_key": world.id(name),
        "worker_identity": f"{name}@host",
        "task_queue": world.queue,
        "sdk_name": "temporal-script",
        "sdk_version": "1.2.3",
        "status": "WORKER_STATUS_RUNNING",
        "start_time": BEGAN,
        "heartbeat_time": BEGAN,
    } | fields


def tell(world: World, *heartbeats: dict, **fields) -> Message:
    return world.attempt("RecordWorkerHeartbeat", worker_heartbeat=heartbeats, **fields)


def ask(world: World, query: str = "", **fields) -> None:
    """Lists and counts those of this scenario: they share their namespace with others."""
    mine = f"TaskQueue = '{world.queue}'"
    query = f"{mine} AND {query}" if query else mine
    world.attempt("ListWorkers", query=query, **fields)
    world.attempt("CountWorkers", query=query)


def describe(world: World, name: str = "worker", **fields) -> Message:
    return world.attempt("DescribeWorker", **({"worker_instance_key": world.id(name)} | fields))


@scenario
def worker_tells_everything(world: World) -> None:
    slots = {
        "current_available_slots": 90,
        "current_used_slots": 10,
        "slot_supplier_kind": "Fixed",
        "total_processed_tasks": 1000,
        "total_failed_tasks": 7,
        "last_interval_processed_tasks": 30,
        "last_interval_failure_tasks": 1,
    }
    pollers = {"current_pollers": 5, "last_successful_poll_time": BEGAN, "is_autoscaling": True}
    tell(
        world,
        heartbeat(
            world,
            host_info={
                "host_name": "host",
                "worker_grouping_key": "group",
                "process_id": "17",
                "current_host_cpu_usage": 0.5,
                "current_host_mem_usage": 0.25,
            },
            deployment_version={"build_id": "b1", "deployment_name": "d1"},
            elapsed_since_last_heartbeat=seconds(60),
            workflow_task_slots_info=slots,
            activity_task_slots_info=slots,
            nexus_task_slots_info=slots,
            local_activity_slots_info=slots,
            workflow_poller_info=pollers,
            workflow_sticky_poller_info=pollers,
            activity_poller_info=pollers,
            nexus_poller_info=pollers,
            total_sticky_cache_hit=5,
            total_sticky_cache_miss=6,
            current_sticky_cache_size=7,
            plugins=[{"name": "p", "version": "1"}],
            drivers=[{"type": "s3"}],
        ),
    )
    describe(world)
    ask(world)


@scenario
def worker_tells_more_later(world: World) -> None:
    tell(world, heartbeat(world))
    tell(world, heartbeat(world, status="WORKER_STATUS_SHUTTING_DOWN", total_sticky_cache_hit=9))
    describe(world)
    ask(world)


@scenario
def workers_are_listed(world: World) -> None:
    tell(world, heartbeat(world, "one", host_info={"host_name": "a"}), heartbeat(world, "two", sdk_version="2.0.0"))
    tell(world, heartbeat(world, "three", status="WORKER_STATUS_SHUTDOWN", host_info={"host_name": "b"}))
    ask(world)
    for query in [
        f"WorkerInstanceKey = '{world.id('two')}'",
        "WorkerIdentity = 'one@host'",
        "WorkerIdentity IN ('one@host', 'three@host')",
        "HostName = 'a'",
        "HostName != 'a'",
        "SdkVersion = '2.0.0'",
        "SdkName = 'temporal-script' AND SdkVersion = '1.2.3'",
        "(HostName = 'a' OR HostName = 'b')",
        "WorkerStatus = 'Running'",
        "Status = 'Running'",
        "StartTime = '2023-11-14T22:13:20Z'",
        "StartTime > '2024-01-01T00:00:00Z'",
        "WorkerIdentity STARTS_WITH 't'",
    ]:
        ask(world, query)


@scenario
def workers_page_by_page(world: World) -> None:
    tell(world, *(heartbeat(world, f"worker-{number}") for number in range(5)))
    query, token = f"TaskQueue = '{world.queue}'", b""
    for _ in range(3):
        page = world.call("ListWorkers", query=query, page_size=2, next_page_token=token)
        token = page.next_page_token


@scenario
def bad_questions_about_workers(world: World) -> None:
    for rpc in ["ListWorkers", "CountWorkers"]:
        for query in ["nonsense", "Nobody = 'x'", "TaskQueue = ", "TaskQueue = 3", "TaskQueue = 'x' ORDER BY HostName"]:
            world.attempt(rpc, query=query)
        world.attempt(rpc, namespace="nowhere")
    describe(world, "nobody")
    describe(world, worker_instance_key="")
    describe(world, namespace="nowhere")
    tell(world, heartbeat(world), namespace="nowhere")
    tell(world)


@scenario
def worker_shuts_down(world: World) -> None:
    tell(world, heartbeat(world))
    world.attempt(
        "ShutdownWorker",
        sticky_task_queue=f"{world.queue}-sticky",
        reason="done",
        worker_heartbeat=heartbeat(world, status="WORKER_STATUS_SHUTTING_DOWN"),
        worker_instance_key=world.id("worker"),
        task_queue=world.queue,
    )
    describe(world)
    ask(world)
