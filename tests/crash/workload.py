"""The workflows and activities whose fate the crash test follows."""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy

STEPS = 3


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
class Journey:
    """Takes steps, collecting letters on the way, and rests between them until told to go on."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.is_closed = False

    @workflow.run
    async def run(self) -> list[str]:
        for number in range(STEPS):
            await workflow.execute_activity(
                step,
                number,
                # An attempt whose answer died with the server is found by this timeout.
                start_to_close_timeout=timedelta(seconds=3),
                retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100)),
            )
        await workflow.wait_condition(lambda: self.is_closed)
        return self.letters

    @workflow.signal
    def deliver(self, letter: str) -> None:
        self.letters.append(letter)

    @workflow.signal
    def close(self) -> None:
        self.is_closed = True
