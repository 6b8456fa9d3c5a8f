"""The example of docs/admission.md, number by number, on a running server.

Three workers of a queue, their tasks and queries, and other queues of the namespace are driven over HTTP until the
queue's admission payload is the one in the page. Nothing is made up: each lease is a task that a worker holds, each
dispatch a poll that was answered, each pending query a caller that waits.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

import pytest
from support import until

from server import Door, Server

PAGE = Path(__file__).parents[2] / "docs" / "admission.md"
QUEUE = "payments"
WORKERS = ["payments-1", "payments-2", "payments-3"]
THREADS = 8  # as many as the queue may have leases

DEFAULTS = {
    "DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_QUEUE": "25",
    "DW_ACTIVITY_TASK_MAX_ACTIVE_LEASES_PER_QUEUE": "100",
    "DW_WORKFLOW_TASK_MAX_ACTIVE_LEASES_PER_NAMESPACE": "500",
    "DW_ACTIVITY_TASK_MAX_ACTIVE_LEASES_PER_NAMESPACE": "2000",
    "DW_WORKFLOW_TASK_MAX_DISPATCHES_PER_MINUTE": "600",
    "DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE": "1200",
    "DW_WORKFLOW_TASK_MAX_DISPATCHES_PER_MINUTE_PER_NAMESPACE": "12000",
    "DW_ACTIVITY_TASK_MAX_DISPATCHES_PER_MINUTE_PER_NAMESPACE": "24000",
    "DW_QUERY_TASK_MAX_PENDING_PER_QUEUE": "1024",
}

OVERRIDES = {
    "production:payments": {
        "workflow_tasks": {
            "max_active_leases_per_queue": 8,
            "max_dispatches_per_minute": 120,
            "dispatch_budget_group": "downstream-openai",
            "max_dispatches_per_minute_per_budget_group": 600,
        },
        "activity_tasks": {"max_active_leases_per_queue": 12, "max_dispatches_per_minute": 240},
    },
    "production:chat": {
        "workflow_tasks": {
            "dispatch_budget_group": "downstream-openai",
            "max_dispatches_per_minute_per_budget_group": 600,
        },
    },
    "production:*": {
        "workflow_tasks": {"max_active_leases_per_namespace": 300, "max_dispatches_per_minute_per_namespace": 6000},
        "activity_tasks": {"max_active_leases_per_namespace": 1200, "max_dispatches_per_minute_per_namespace": 12000},
    },
    "*": {"workflow_tasks": {"max_active_leases_per_queue": 50}},
}

# What the other queues do in the minute: tasks that start, and how many of them workers keep.
OTHERS = {
    "chat": (480, 0),  # shares the group's budget with payments: 480 + 120 = 600
    "orders": (584, 29),
    "mails": (584, 28),
    "reports": (584, 28),
    "search": (584, 28),
    "audit": (584, 28),
}

FINISH = {"type": "complete_workflow"}
CHARGE = {"type": "schedule_activity", "activity_type": "charge_card"}


def example_of_the_page() -> dict[str, Any]:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return json.loads(block)


class Minute:
    """The minute of the wall clock in which the dispatches are counted."""

    @staticmethod
    def present() -> int:
        return int(time.time() // 60)

    def __init__(self) -> None:
        if time.time() % 60 > 20:
            time.sleep(60 - time.time() % 60)
        self.number = self.present()

    def is_over(self) -> bool:
        return self.present() != self.number


class Fleet:
    """Workers, each a thread that polls."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.pool = ThreadPoolExecutor(THREADS)

    def at_once(self, count: int, errand: Callable[[int], Any]) -> list[Any]:
        return list(self.pool.map(errand, range(count)))

    def start(self, queue: str, stem: str, count: int) -> None:
        self.at_once(count, lambda i: self.door.start(f"{queue}-{stem}-{i}", queue))

    def take(self, kind: str, queue: str, workers: list[str], count: int) -> list[dict[str, Any]]:
        """Tasks that stay with their workers."""
        return self.at_once(count, lambda i: self.door.take(kind, workers[i % len(workers)], queue))

    def work(self, queue: str, workers: list[str], count: int, *commands: dict[str, Any]) -> None:
        def errand(i: int) -> None:
            self.door.complete(self.door.take("workflow", workers[i % len(workers)], queue), *commands)

        self.at_once(count, errand)


def prepare(fleet: Fleet) -> None:
    """What counts nowhere: work that waits."""
    for queue, (dispatches, _) in OTHERS.items():
        fleet.door.register(f"{queue}-1", queue)
        fleet.start(queue, "run", dispatches)
    fleet.start(QUEUE, "charged", 43)


def fill_the_minute(fleet: Fleet) -> None:
    for queue, (dispatches, kept) in OTHERS.items():
        fleet.work(queue, [f"{queue}-1"], dispatches - kept, FINISH)
        fleet.take("workflow", queue, [f"{queue}-1"], kept)
    for worker in WORKERS:
        fleet.door.register(
            worker, QUEUE, capabilities=["query_tasks"],
            max_concurrent_workflow_tasks=8, max_concurrent_activity_tasks=12,
        )
    # Payments: 43 tasks each schedule an activity. 35 of those end, and so do their workflows.
    fleet.work(QUEUE, WORKERS, 43, CHARGE)
    fleet.at_once(35, lambda i: fleet.door.complete_activity(fleet.door.take("activity", WORKERS[i % 3], QUEUE)))
    fleet.take("activity", QUEUE, WORKERS, 8)
    fleet.work(QUEUE, WORKERS, 35, FINISH)
    # 34 are done at once, 8 stay with workers, 5 wait: 43 + 35 + 34 + 8 = 120.
    fleet.start(QUEUE, "quick", 34)
    fleet.work(QUEUE, WORKERS, 34, FINISH)
    fleet.start(QUEUE, "slow", 13)
    fleet.take("workflow", QUEUE, WORKERS, 8)


def answer_query(door: Door, task: dict[str, Any]) -> None:
    door.post(
        f"worker/query-tasks/{task['query_task_id']}/complete",
        lease_owner=task["lease_owner"], query_task_attempt=task["query_task_attempt"], result="fine",
    )


def differences(wanted: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{section}.{field}": (shown[section].get(field), value)
        for section, fields in wanted.items()
        for field, value in fields.items()
        if shown[section].get(field, "missing") != value
    }


@pytest.mark.timeout(400)
async def test_the_example_of_the_page_is_what_a_server_shows(tmp_path: Path) -> None:
    wanted = example_of_the_page()
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        server = Server(folder)
        server.write("")
        await server.start(DW_TASK_QUEUE_ADMISSION_OVERRIDES=json.dumps(OVERRIDES), **DEFAULTS)
        try:
            door = server.door("production")
            door.post("namespaces", name="production")
            fleet = Fleet(door)
            await asyncio.to_thread(prepare, fleet)
            minute = await asyncio.to_thread(Minute)
            await asyncio.to_thread(fill_the_minute, fleet)
            asked = [
                fleet.pool.submit(door.ask, "POST", f"workflows/payments-slow-{i}/query/state", {}) for i in range(7)
            ]

            async def do_queries_wait() -> bool:
                return door.admission(QUEUE)["query_tasks"]["approximate_pending_count"] == 7

            await until(do_queries_wait)
            over_http = door.admission(QUEUE)
            over_grpc = await server.admission(QUEUE, "production")
            if minute.is_over():
                continue  # a slow machine: the counts began anew meanwhile

            assert differences(wanted, over_http) == {}
            assert differences(wanted, over_grpc) == {}
            # The page leaves out some fields of two sections, and none of the first.
            assert over_http["workflow_tasks"].keys() == wanted["workflow_tasks"].keys()
            assert over_http == over_grpc

            # Five tasks wait and sixteen slots are free, yet nobody is given one.
            refused = door.poll("workflow", WORKERS[0], QUEUE, seconds=1)
            assert (refused["task"], refused["poll_status"]) == (None, "throttled")
            # The queries were real, too.
            for _ in asked:
                answer_query(door, door.take("query", WORKERS[0], QUEUE))
            for query in asked:
                status, answer = query.result()
                assert (status, answer["result"]) == (200, "fine")
            assert door.admission(QUEUE)["query_tasks"]["approximate_pending_count"] == 0
            return
        finally:
            server.stop()
    pytest.fail("three times a minute was over before its work was done")
