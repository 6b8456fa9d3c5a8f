"""Budgets over queues and namespaces, with real workers, and what operators are told of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from support import until, within_bound
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from errand import Bench, Errand
from own_server import Server


async def send(client: Client, queue: str, count: int) -> list[WorkflowHandle]:
    return [
        await client.start_workflow(Errand.run, f"{queue}-{i}", id=f"{queue}-{i}", task_queue=queue)
        for i in range(count)
    ]


def worker(client: Client, queue: str, bench: Bench) -> Worker:
    return Worker(client, task_queue=queue, workflows=[Errand], activities=[bench.work])


async def test_a_cap_on_leases_holds_and_a_freed_place_is_used(server: Server) -> None:
    server.write("[admission.activity_tasks]\nmax_active_leases_per_queue = 2\n")
    client = await server.start()
    bench = Bench()
    async with worker(client, "mails", bench):
        handles = await send(client, "mails", 5)

        async def is_full() -> bool:
            shown = (await server.admission("mails"))["activity_tasks"]
            return shown["leased_count"] == 2 and shown["ready_count"] == 3

        await until(is_full)
        shown = (await server.admission("mails"))["activity_tasks"]
        assert shown["status"] == "throttled"
        assert shown["server_max_active_leases_per_queue"] == 2
        assert shown["server_remaining_active_lease_capacity"] == 0
        assert shown["active_worker_count"] == 1
        assert shown["server_budget_source"] == "server.admission.activity_tasks.max_active_leases_per_queue"
        assert len(bench.begun) == 2

        said = []
        for handle in handles:
            said.append(await server.run("explain", "--workflow-id", handle.id, "--activity-id", "work"))
        assert sum("A budget is used up" in text and "2 of 2" in text for text in said) == 3

        bench.may_end.set()
        for handle in handles:
            await within_bound(handle.result())
    assert (await server.admission("mails"))["activity_tasks"]["leased_count"] == 0


async def test_budgets_hold_over_a_crash_and_change_while_the_server_runs(server: Server) -> None:
    server.write(
        "[admission.activity_tasks]\n"
        "max_active_leases_per_namespace = 2\n"
        "max_dispatches_per_minute = 1000\n"
    )
    client = await server.start()
    bench = Bench()
    async with worker(client, "a", bench), worker(client, "b", bench):
        handles = await send(client, "a", 2) + await send(client, "b", 2)

        async def are_two_out() -> bool:
            return len(bench.begun) == 2

        await until(are_two_out)
        before = await server.admission(bench.begun[0][0])
        server.kill(signal.SIGKILL)
        client = await server.start()
        after = await server.admission(bench.begun[0][0])
        for name in ("leased_count", "server_namespace_active_lease_count"):
            assert after["activity_tasks"][name] == before["activity_tasks"][name], name
        assert after["activity_tasks"]["server_namespace_active_lease_count"] == 2
        assert after["activity_tasks"]["status"] == "throttled"

        # More room, without a restart.
        server.write("[admission.activity_tasks]\nmax_active_leases_per_namespace = 3\n")
        server.process.send_signal(signal.SIGHUP)

        async def are_three_out() -> bool:
            return len(bench.begun) == 3

        await until(are_three_out)
        bench.may_end.set()
        for handle in handles:
            await within_bound(handle.result())
    assert sorted(bench.begun) == ["a-0", "a-1", "b-0", "b-1"]


async def test_overrides_come_from_the_environment(server: Server) -> None:
    overrides = {
        "default:payments": {
            "workflow_tasks": {
                "max_active_leases": 8,
                "max_dispatches_per_minute": 120,
                "budget_group": "downstream-openai",
                "max_dispatches_per_minute_per_budget_group": 600,
            }
        },
        "default:*": {"workflow_tasks": {"max_dispatches_per_minute_per_namespace": 6000}},
    }
    client = await server.start(
        DW_TASK_QUEUE_ADMISSION_OVERRIDES=json.dumps(overrides),
        DW_QUERY_TASK_MAX_PENDING_PER_QUEUE="7",
    )
    bench = Bench()
    bench.may_end.set()
    shown = await server.admission("payments")
    assert shown["workflow_tasks"]["status"] == "no_active_workers"
    async with worker(client, "payments", bench):
        for handle in await send(client, "payments", 3):
            await within_bound(handle.result())
        shown = await server.admission("payments")
    tasks = shown["workflow_tasks"]
    assert tasks["status"] == "accepting"
    assert tasks["server_max_active_leases_per_queue"] == 8
    assert tasks["server_dispatch_budget_group"] == "downstream-openai"
    # Two workflow tasks each. A minute may have begun anew meanwhile.
    assert tasks["server_dispatch_count_this_minute"] <= 6
    assert tasks["server_dispatch_count_this_minute"] == tasks["server_budget_group_dispatch_count_this_minute"]
    assert tasks["server_dispatch_count_this_minute"] == tasks["server_namespace_dispatch_count_this_minute"]
    assert shown["query_tasks"]["max_pending_per_queue"] == 7


async def test_workers_of_both_doors_share_a_budget(server: Server) -> None:
    server.write("[admission.workflow_tasks]\nmax_active_leases_per_namespace = 1\n")
    client = await server.start(DW_AUTH_DRIVER="none")
    durable = {"worker_id": "dw", "task_queue": "mixed"}
    await server.durable("worker/register", runtime="test", max_concurrent_workflow_tasks=5, **durable)
    for name in ("first", "second"):
        await server.durable("workflows", workflow_id=name, workflow_type="any", task_queue="mixed")
    polled = await server.durable("worker/workflow-tasks/poll", timeout_seconds=30, **durable)
    task = polled["task"]
    assert task is not None

    bench = Bench()
    bench.may_end.set()
    async with worker(client, "mixed", bench):
        (handle,) = await send(client, "mixed", 1)

        async def do_both_wait() -> bool:
            shown = (await server.admission("mixed"))["workflow_tasks"]
            return shown["ready_count"] == 2 and shown["active_worker_count"] == 2

        await until(do_both_wait)
        shown = (await server.admission("mixed"))["workflow_tasks"]
        assert shown["status"] == "throttled"
        assert shown["leased_count"] == shown["server_namespace_active_lease_count"] == 1
        assert shown["configured_slot_count"] == 5 + 100
        polled = await server.durable("worker/workflow-tasks/poll", timeout_seconds=1, **durable)
        assert (polled["task"], polled["poll_status"]) == (None, "throttled")

        await server.durable(
            f"worker/workflow-tasks/{task['task_id']}/complete",
            lease_owner="dw",
            workflow_task_attempt=task["workflow_task_attempt"],
            commands=[{"type": "fail_workflow", "message": "enough"}],
        )
        await within_bound(handle.result())


async def test_a_sliding_cap_of_dispatches_holds(server: Server) -> None:
    server.write(
        '[admission.queue_overrides."burst".activity_tasks]\n'
        'max_dispatches_per_minute = 3\n'
        'dispatch_window = "sliding"\n'
    )
    client = await server.start()
    bench = Bench()
    bench.may_end.set()
    async with worker(client, "burst", bench):
        await send(client, "burst", 6)

        async def is_used_up() -> bool:
            shown = (await server.admission("burst"))["activity_tasks"]
            return shown["ready_count"] == 3

        await until(is_used_up)
        shown = (await server.admission("burst"))["activity_tasks"]
        assert shown["server_dispatch_count_this_minute"] == 3
        assert shown["status"] == "throttled"
        assert len(bench.begun) == 3


def test_a_mistake_is_named_with_its_place(tmp_path: Path) -> None:
    config = tmp_path / "fairlead.toml"
    config.write_text("[admission.activity_tasks]\nmax_active_leases_per_quueue = 2\n")
    said = subprocess.run(
        [os.environ["FAIRLEAD_BINARY"], "server", "--config", str(config), "--data-dir", str(tmp_path / "data")],
        capture_output=True, text=True, timeout=30,
    )
    assert said.returncode == 2
    assert "fairlead.toml:2:1" in said.stderr
    assert "max_active_leases_per_queue" in said.stderr
