"""The workflows and activities whose fate the crash test follows."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy

STEPS = 3
# An attempt whose answer died with the server is found by this timeout.
STEP_OPTIONS = {
    "start_to_close_timeout": timedelta(seconds=3),
    "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=100)),
}


@dataclass
class Memories:
    """What a journey returns."""

    letters: list[str]
    stamps: list[str]
    companions: list[str]


def companion_id(journey: str, number: int) -> str:
    return f"{journey}/companion-{number}"


def postcard(companion: str) -> str:
    return f"{companion}/postcard"


@activity.defn
async def step(number: int) -> int:
    """Notes its execution in a log that outlives the server, then succeeds."""
    info = activity.info()
    entry = {
        "run_id": info.workflow_run_id,
        "activity_id": info.activity_id,
        "attempt": info.attempt,
        "time": time.time(),
    }
    # One write of a short line to a file opened for appending is atomic.
    log = os.open(os.environ["EXECUTION_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(log, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(log)
    # Long enough for some kills to find it at work.
    await asyncio.sleep(0.1)
    return number


@workflow.defn
class Companion:
    """Goes a step, writes home to its parent, and tells its name."""

    @workflow.run
    async def run(self) -> str:
        info = workflow.info()
        await workflow.execute_activity(step, 0, **STEP_OPTIONS)
        assert info.parent is not None
        parent = workflow.get_external_workflow_handle(info.parent.workflow_id)
        await parent.signal(Journey.deliver, postcard(info.workflow_id))
        return info.workflow_id


@workflow.defn
class Journey:
    """Takes steps, with companions on ways of their own, and collects letters and stamps until it is
    told to go home."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.stamps: list[str] = []
        self.is_closed = False

    @workflow.run
    async def run(self, companions: int) -> Memories:
        own_id = workflow.info().workflow_id
        others = [
            await workflow.start_child_workflow(
                Companion.run, id=companion_id(own_id, number)
            )
            for number in range(companions)
        ]
        for number in range(STEPS):
            await workflow.execute_activity(step, number, **STEP_OPTIONS)
        await workflow.wait_condition(lambda: self.is_closed)
        return Memories(self.letters, self.stamps, [await other for other in others])

    @workflow.signal
    def deliver(self, letter: str) -> None:
        self.letters.append(letter)

    @workflow.update
    def stamp(self, mark: str) -> int:
        self.stamps.append(mark)
        return len(self.stamps)

    @stamp.validator
    def check_stamp(self, mark: str) -> None:
        if mark.endswith("forged"):
            raise ValueError("a forged stamp")

    @workflow.signal
    def close(self) -> None:
        self.is_closed = True
