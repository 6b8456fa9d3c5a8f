"""What the tests about order use to let tasks wait and to see whose turn it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Awaitable, Callable

from temporalio.client import WorkflowHandle
from temporalio.common import Priority

from app.turns import Errand, RunErrands, SendVisitors, Turns, VisitOnce
from queues import ACTIVITY, WORKFLOW, until_waiting
from support import Stage

# With one slot a worker asks for its next task when it is done with the last one, so the order of
# its turns is the order in which tasks were handed out. (A worker that caches workflows would poll
# a queue of its own, too, and insist on a second slot for that.)
ONE_BY_ONE = {
    "max_cached_workflows": 0,
    "max_concurrent_workflow_tasks": 1,
    "max_concurrent_workflow_task_polls": 1,
    "max_concurrent_activities": 1,
    "max_concurrent_activity_task_polls": 1,
}


def errands(name: str, count: int, **priority) -> list[Errand]:
    return [Errand(f"{name} {n}", Priority(**priority)) for n in range(1, count + 1)]


@dataclass
class Plan:
    """What one workflow schedules, and with which priority the workflow itself runs."""

    errands: list[Errand]
    priority: Priority = field(default_factory=Priority)


def tenant(turn: str) -> str:
    return turn.split()[0]


def assert_shares(taken: list[str], shares: dict[str, int]) -> None:
    """Any run of consecutive turns that is as long as the sum of all shares holds exactly these."""
    length = sum(shares.values())
    assert len(taken) >= length
    for first in range(len(taken) - length + 1):
        window = taken[first : first + length]
        assert Counter(map(tenant, window)) == shares, f"turns {first} … of {taken}"


def assert_first_come_first_served(taken: list[str]) -> None:
    """Each tenant's turns come in the order in which they were asked for."""
    counts: Counter[str] = Counter()
    for turn in taken:
        counts[tenant(turn)] += 1
        assert turn == f"{tenant(turn)} {counts[tenant(turn)]}", taken


async def workflow_turns(stage: Stage, guests: list[Errand]) -> list[str]:
    """Starts workflows while nobody works, then lets one worker take them one by one."""
    handles: list[WorkflowHandle] = []
    for guest in guests:
        workflow_id = f"{stage.workflow_id} {guest.name}"
        handle = await stage.start(
            VisitOnce.run, guest.name, id=workflow_id, priority=guest.priority
        )
        handles.append(handle)
    await until_waiting(stage, WORKFLOW, len(guests))
    turns = Turns()
    async with stage.worker(VisitOnce, activities=[turns.take_turn], **ONE_BY_ONE):
        for handle in handles:
            await handle.result()
    return turns.taken


def counter_of(stage: Stage) -> Stage:
    """Where what workflows ask for waits apart from them."""
    return Stage(stage.client, f"{stage.name}-counter")


async def activity_turns(
    stage: Stage,
    *plans: Plan,
    meanwhile: Callable[[], Awaitable] | None = None,
) -> list[str]:
    """Lets workflows schedule activities that nobody runs yet; then one worker takes them."""
    counter = counter_of(stage)
    turns = Turns()
    async with stage.worker(RunErrands):
        handles: list[WorkflowHandle] = []
        for number, plan in enumerate(plans):
            handle = await stage.start(
                RunErrands.run,
                counter.name,
                plan.errands,
                id=f"{stage.workflow_id}-{number}",
                priority=plan.priority,
            )
            handles.append(handle)
        total = sum(len(plan.errands) for plan in plans)
        await until_waiting(counter, ACTIVITY, total)
        if meanwhile:
            await meanwhile()
        async with counter.worker(activities=[turns.take_turn], **ONE_BY_ONE):
            for handle in handles:
                await handle.result()
    assert len(turns.taken) == total
    return turns.taken


async def child_turns(stage: Stage, *plans: Plan) -> list[str]:
    """Lets workflows start children that nobody works for yet; then one worker takes them.

    Each child is started by itself, so siblings of one tenant may wait in any order.
    """
    counter = counter_of(stage)
    turns = Turns()
    async with stage.worker(SendVisitors):
        handles: list[WorkflowHandle] = []
        for number, plan in enumerate(plans):
            handle = await stage.start(
                SendVisitors.run,
                counter.name,
                plan.errands,
                id=f"{stage.workflow_id}-{number}",
                priority=plan.priority,
            )
            handles.append(handle)
        total = sum(len(plan.errands) for plan in plans)
        await until_waiting(counter, WORKFLOW, total)
        async with counter.worker(
            VisitOnce, activities=[turns.take_turn], **ONE_BY_ONE
        ):
            for handle in handles:
                await handle.result()
    assert len(turns.taken) == total
    return turns.taken
