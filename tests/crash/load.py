"""Starts workflows, signals and updates them, and remembers what the server acknowledged."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from workload import Journey


# An update waits for the worker, which may be waiting for a task that died with the server.
UPDATE_SECONDS_MAX = 30.0


@dataclass
class Acknowledged:
    """One workflow whose start was acknowledged, and what else was of it."""

    workflow_id: str
    run_id: str
    companions: int
    letters: list[str] = field(default_factory=list)
    stamps: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)


class Load:
    def __init__(self, client: Client, queue: str, rng: random.Random) -> None:
        self.client = client
        self.queue = queue
        self.rng = rng
        self.workflows: list[Acknowledged] = []
        self.refused = 0
        self.refused_as_duplicate: list[str] = []
        self.is_over = asyncio.Event()

    async def run(self, lanes: int) -> None:
        """Keeps a few lanes of travellers busy until it is over."""
        seeds = [self.rng.getrandbits(64) for _ in range(lanes)]
        await asyncio.gather(
            *(self._lane(lane, seed) for lane, seed in enumerate(seeds))
        )

    async def _lane(self, lane: int, seed: int) -> None:
        rng = random.Random(seed)
        number = 0
        while not self.is_over.is_set():
            await self._travel(f"{self.queue}-{lane}-{number}", rng)
            number += 1

    async def _travel(self, workflow_id: str, rng: random.Random) -> None:
        companions = rng.randrange(0, 3)
        try:
            handle = await self.client.start_workflow(
                Journey.run, companions, id=workflow_id, task_queue=self.queue
            )
        except RPCError:
            # Not acknowledged: it may or may not exist, and nothing is claimed about it.
            self.refused += 1
            await asyncio.sleep(0.1)
            return
        except WorkflowAlreadyStartedError as error:
            # Every id is used once, so this is the client's own retry that was not recognised.
            self.refused_as_duplicate.append(f"{workflow_id}: {error}")
            return
        journey = Acknowledged(workflow_id, handle.first_execution_run_id, companions)
        self.workflows.append(journey)
        for index in range(rng.randrange(1, 5)):
            await asyncio.sleep(rng.uniform(0.0, 0.15))
            letter = f"{workflow_id}/{index}"
            if await self._signal(handle, letter):
                journey.letters.append(letter)
            if rng.random() < 0.4:
                await self._stamp(handle, journey, f"{workflow_id}/stamp-{index}")
            if rng.random() < 0.2:
                await self._stamp(handle, journey, f"{workflow_id}/{index}-forged")

    async def _signal(self, handle: WorkflowHandle, letter: str) -> bool:
        try:
            await handle.signal(Journey.deliver, letter)
        except RPCError:
            self.refused += 1
            return False
        return True

    async def _stamp(
        self, handle: WorkflowHandle, journey: Acknowledged, mark: str
    ) -> None:
        """Sends an update under an id of its own: the client may send it again after a crash."""
        try:
            update = handle.execute_update(Journey.stamp, mark, id=mark)
            await asyncio.wait_for(update, UPDATE_SECONDS_MAX)
        except WorkflowUpdateFailedError:
            journey.rejected.append(mark)
        except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError):
            self.refused += 1
        else:
            journey.stamps.append(mark)
