"""Every word that a queue's admission may have, reached with workers of both doors.

`unavailable` is the exception: a server opens its doors when it knows all counts, so nobody can ask earlier. The desk's
own test (src/shard/admission_desk_test.cc) asks it before.
"""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import pytest
from support import until, within_bound
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.workflowservice.v1 import QueryWorkflowRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from errand import Bench, Errand
from server import Door, Server

QUEUE = "work"
FINISH = {"type": "complete_workflow"}
ACTIVITY = {"type": "schedule_activity", "activity_type": "any"}


def status(door: Door, kind: str, queue: str = QUEUE) -> str:
    return door.admission(queue)[f"{kind}_tasks"]["status"]


async def begin(client: Client, queue: str, count: int) -> list[Any]:
    return [
        await client.start_workflow(Errand.run, f"{queue}-{i}", id=f"{queue}-{i}", task_queue=queue)
        for i in range(count)
    ]


# ---- with workers that speak HTTP ----------------------------------------------------------------


async def test_slots_of_http_workers(server: Server) -> None:
    await server.start()
    door = server.door()
    assert status(door, "workflow") == status(door, "activity") == "no_active_workers"
    door.register("w", QUEUE, max_concurrent_workflow_tasks=1, max_concurrent_activity_tasks=0)
    assert (status(door, "workflow"), status(door, "activity")) == ("accepting", "no_slots")
    door.start("one", QUEUE)
    task = door.take("workflow", "w", QUEUE)
    assert status(door, "workflow") == "saturated"
    door.complete(task, FINISH)
    assert status(door, "workflow") == "accepting"
    assert door.ask("DELETE", "worker/registrations/w")[0] == 200
    assert status(door, "workflow") == "no_active_workers"


async def test_an_http_worker_that_is_silent_counts_no_more(server: Server) -> None:
    await server.start(DW_WORKER_STALE_AFTER_SECONDS="1")
    door = server.door()
    door.register("w", QUEUE)

    async def is_forgotten() -> bool:
        return status(door, "workflow") == "no_active_workers"

    await until(is_forgotten)
    door.post("worker/heartbeat", worker_id="w")
    assert status(door, "workflow") == "accepting"


BUDGETS = {
    "max_active_leases_per_queue": "server_remaining_active_lease_capacity",
    "max_active_leases_per_namespace": "server_remaining_namespace_active_lease_capacity",
    "max_dispatches_per_minute": "server_remaining_dispatch_capacity",
    "max_dispatches_per_minute_per_namespace": "server_remaining_namespace_dispatch_capacity",
    "max_dispatches_per_minute_per_budget_group": "server_remaining_budget_group_dispatch_capacity",
}


@pytest.mark.parametrize("kind", ["workflow", "activity"])
@pytest.mark.parametrize("field", BUDGETS)
async def test_each_budget_throttles_http_workers(server: Server, field: str, kind: str) -> None:
    server.write(
        f'[admission.queue_overrides."*".{kind}_tasks]\n'
        f'{field} = 1\ndispatch_budget_group = "shared"\ndispatch_window = "sliding"\n'
    )
    await server.start()
    door = server.door()
    door.register("w", QUEUE)
    for name in ("first", "second"):
        door.start(name, QUEUE)
        if kind == "activity":
            door.complete(door.take("workflow", "w", QUEUE), ACTIVITY)
    assert status(door, kind) == "accepting"
    door.take(kind, "w", QUEUE)
    shown = door.admission(QUEUE)[f"{kind}_tasks"]
    assert (shown["status"], shown[BUDGETS[field]], shown["ready_count"]) == ("throttled", 0, 1)
    polled = door.poll(kind, "w", QUEUE, seconds=1)
    assert (polled["task"], polled["poll_status"]) == (None, "throttled")
    assert (await server.admission(QUEUE))[f"{kind}_tasks"] == shown


async def test_queries_fill_their_line_through_both_doors(server: Server) -> None:
    client = await server.start(DW_QUERY_TASK_MAX_PENDING_PER_QUEUE="2")
    door = server.door()
    door.register("w", QUEUE, capabilities=["query_tasks"])
    door.start("asked", QUEUE)
    bench = Bench()
    bench.may_end.set()
    async with Worker(client, task_queue=QUEUE, workflows=[Errand], activities=[bench.work]):
        (done,) = await begin(client, QUEUE, 1)
        await within_bound(done.result())
    # The worker of one door is gone, that of the other does not ask for queries: both wait.
    over_http = asyncio.create_task(asyncio.to_thread(door.ask, "POST", "workflows/asked/query/state", {}))
    request = QueryWorkflowRequest(
        namespace="default",
        execution=WorkflowExecution(workflow_id=done.id),
        query=WorkflowQuery(query_type="state"),
    )
    over_grpc = asyncio.create_task(client.workflow_service.query_workflow(request))

    async def do_both_wait() -> bool:
        return door.admission(QUEUE)["query_tasks"]["approximate_pending_count"] == 2

    await until(do_both_wait)
    assert door.admission(QUEUE)["query_tasks"]["status"] == "full"
    assert (await server.admission(QUEUE))["query_tasks"]["status"] == "full"
    code, refused = await asyncio.to_thread(door.ask, "POST", "workflows/asked/query/state", {})
    assert (code, refused["reason"]) == (429, "query_task_queue_full")
    with pytest.raises(RPCError) as error:
        await client.workflow_service.query_workflow(request)
    assert error.value.status == RPCStatusCode.RESOURCE_EXHAUSTED

    over_grpc.cancel()
    task = door.take("query", "w", QUEUE)
    door.post(
        f"worker/query-tasks/{task['query_task_id']}/complete",
        lease_owner="w", query_task_attempt=task["query_task_attempt"], result=1,
    )
    assert (await over_http)[1]["result"] == 1

    async def is_one_gone() -> bool:
        return (await server.admission(QUEUE))["query_tasks"]["status"] == "accepting"

    await until(is_one_gone)


# ---- with Temporal's workers ---------------------------------------------------------------------


async def test_slots_of_temporal_workers(server: Server) -> None:
    client = await server.start()

    async def becomes(kind: str, word: str) -> None:
        async def is_so() -> bool:
            return (await server.admission(QUEUE))[f"{kind}_tasks"]["status"] == word

        await until(is_so)

    await becomes("workflow", "no_active_workers")
    async with Worker(client, task_queue=QUEUE, workflows=[Errand]):
        await becomes("workflow", "accepting")
        await becomes("activity", "no_slots")
    # They do not tell how many tasks they take, and are shown with a hundred.
    bench = Bench()
    async with Worker(
        client, task_queue=QUEUE, workflows=[Errand], activities=[bench.work],
        max_concurrent_activities=120, identity="alone",
    ):
        await becomes("activity", "accepting")
        handles = await begin(client, QUEUE, 100)
        await becomes("activity", "saturated")
        bench.may_end.set()
        for handle in handles:
            await within_bound(handle.result())
        await becomes("activity", "accepting")


# A workflow task of the SDK is answered at once, so that no cap on their leases stays full long enough to be seen.
@pytest.mark.parametrize(
    ("kind", "field"),
    [("activity", field) for field in BUDGETS] + [("workflow", field) for field in BUDGETS if "dispatches" in field],
)
async def test_each_budget_throttles_temporal_workers(server: Server, field: str, kind: str) -> None:
    server.write(
        f'[admission.queue_overrides."*".{kind}_tasks]\n'
        f'{field} = 1\ndispatch_budget_group = "shared"\ndispatch_window = "sliding"\n'
    )
    client = await server.start()
    bench = Bench()
    async with Worker(client, task_queue=QUEUE, workflows=[Errand], activities=[bench.work]):
        await begin(client, QUEUE, 3)

        async def is_used_up() -> bool:
            shown = (await server.admission(QUEUE))[f"{kind}_tasks"]
            return shown["status"] == "throttled" and shown["ready_count"] == 2

        await until(is_used_up)
        shown = (await server.admission(QUEUE))[f"{kind}_tasks"]
        assert (shown[BUDGETS[field]], shown["active_worker_count"]) == (0, 1)
        assert server.door().admission(QUEUE)[f"{kind}_tasks"] == shown

        async def has_one_begun() -> bool:
            return len(bench.begun) == 1

        await until(has_one_begun)
        bench.may_end.set()


# ---- a fleet of both -----------------------------------------------------------------------------


async def test_workers_of_both_doors_share_a_budget_group(server: Server) -> None:
    def budget(cap: int) -> str:
        return "".join(
            f'[admission.queue_overrides."{queue}".activity_tasks]\n'
            f'dispatch_budget_group = "downstream"\n'
            f"max_dispatches_per_minute_per_budget_group = {cap}\n"
            f'dispatch_window = "sliding"\n'
            for queue in ("calls", "jobs")
        )

    server.write(budget(4))
    client = await server.start()
    door = server.door()
    bench = Bench()
    bench.may_end.set()
    for queue in ("jobs", "free"):
        door.register(f"{queue}-worker", queue)
        for i in range(3):
            door.start(f"{queue}-{i}", queue)
            door.complete(door.take("workflow", f"{queue}-worker", queue), ACTIVITY)
    door.complete_activity(door.take("activity", "jobs-worker", "jobs"))
    async with Worker(client, task_queue="calls", workflows=[Errand], activities=[bench.work]):
        handles = await begin(client, "calls", 4)

        async def is_used_up() -> bool:
            shown = (await server.admission("calls"))["activity_tasks"]
            return shown["server_remaining_budget_group_dispatch_capacity"] == 0 and shown["ready_count"] == 1

        await until(is_used_up)
        assert len(bench.begun) == 3
        for queue, started in (("calls", 3), ("jobs", 1)):
            shown = (await server.admission(queue))["activity_tasks"]
            assert shown["status"] == "throttled"
            assert shown["server_dispatch_budget_group"] == "downstream"
            assert shown["server_dispatch_count_this_minute"] == started
            assert shown["server_budget_group_dispatch_count_this_minute"] == 4
        polled = door.poll("activity", "jobs-worker", "jobs", seconds=1)
        assert (polled["task"], polled["poll_status"]) == (None, "throttled")
        # A queue outside the group goes on.
        for _ in range(3):
            door.complete_activity(door.take("activity", "free-worker", "free"))

        # A larger quota: everything goes, here and there.
        server.write(budget(7))
        server.process.send_signal(signal.SIGHUP)
        for _ in range(2):
            door.complete_activity(door.take("activity", "jobs-worker", "jobs"))
        for handle in handles:
            await within_bound(handle.result())
    shown = (await server.admission("jobs"))["activity_tasks"]
    assert shown["server_budget_group_dispatch_count_this_minute"] == 7


# ---- which setting counts ------------------------------------------------------------------------

LEASES = "max_active_leases_per_queue"
RATE = "max_dispatches_per_minute"
SHOWN = {LEASES: "server_max_active_leases_per_queue", RATE: "server_max_dispatches_per_minute"}

OVERRIDES: dict[str, dict[str, int]] = {
    "default:exact": {LEASES: 1, RATE: 101},
    "default:partly": {LEASES: 2},
    "default:*": {RATE: 103},
    "exact": {LEASES: 4, RATE: 104},
    "partly": {LEASES: 5},
    "named": {LEASES: 6},
    "off": {LEASES: 0},
    "*": {LEASES: 7, RATE: 107},
}

# Each field is looked up on its own: namespace:queue, namespace:*, queue, *.
TABLE = [
    ("default", "exact", 1, 101),
    ("default", "partly", 2, 103),
    ("default", "named", 6, 103),
    ("default", "other", 7, 103),
    ("default", "off", None, 103),
    ("elsewhere", "exact", 4, 104),
    ("elsewhere", "partly", 5, 107),
    ("elsewhere", "other", 7, 107),
]


def in_the_file() -> str:
    lines = [f"[admission.workflow_tasks]\n{LEASES} = 91\n{RATE} = 191\n"]
    for key, fields in OVERRIDES.items():
        lines.append(f'[admission.queue_overrides."{key}".workflow_tasks]')
        lines += [f"{name} = {value}" for name, value in fields.items()]
    return "\n".join(lines)


def in_the_environment() -> dict[str, str]:
    overrides = {key: {"workflow_tasks": fields} for key, fields in OVERRIDES.items()}
    return {
        "DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_QUEUE": "91",
        "DW_WORKFLOW_TASK_MAX_DISPATCHES_PER_MINUTE": "191",
        "DW_TASK_QUEUE_ADMISSION_OVERRIDES": json.dumps(overrides),
    }


def budgets(shown: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(shown["workflow_tasks"][name] for name in SHOWN.values())


@pytest.mark.parametrize("where", ["file", "environment"])
async def test_the_most_special_override_that_has_the_field_counts(server: Server, where: str) -> None:
    server.write(in_the_file() if where == "file" else "")
    await server.start(**(in_the_environment() if where == "environment" else {}))
    server.door().post("namespaces", name="elsewhere")
    over_http = [(ns, queue, *budgets(server.door(ns).admission(queue))) for ns, queue, *_ in TABLE]
    assert over_http == TABLE
    over_grpc = [(ns, queue, *budgets(await server.admission(queue, ns))) for ns, queue, *_ in TABLE]
    assert over_grpc == TABLE


async def test_the_environment_beats_the_file_field_by_field(server: Server) -> None:
    server.write(
        f"[admission.workflow_tasks]\n{LEASES} = 91\n{RATE} = 191\n"
        f'[admission.queue_overrides."mails".workflow_tasks]\n{LEASES} = 5\n{RATE} = 105\n'
    )
    overrides = {"mails": {"workflow_tasks": {"max_active_leases": 6}}, "reset": {"workflow_tasks": {RATE: None}}}
    await server.start(
        DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_QUEUE="92",
        DW_TASK_QUEUE_ADMISSION_OVERRIDES=json.dumps(overrides),
    )
    door = server.door()
    assert budgets(door.admission("other")) == (92, 191)
    assert budgets(door.admission("mails")) == (6, 105)
    assert budgets(door.admission("reset")) == (92, 191)
    shown = door.admission("mails")["workflow_tasks"]
    assert shown["server_budget_source"] == "server.admission.queue_overrides"
