"""Types `fairlead task-queue …` about one test's queue and reads what it prints."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any

from support import Stage
from temporalio.client import WorkflowHandle
from temporalio.common import Priority

from errand import Errand


@dataclass
class Outcome:
    code: int
    stdout: str
    stderr: str


async def fairlead(*words: str) -> Outcome:
    """Runs the command without an opinion on whether it should succeed."""
    process = await asyncio.create_subprocess_exec(
        os.environ["FAIRLEAD_BINARY"],
        "task-queue",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, stderr = await process.communicate()
    return Outcome(process.returncode, stdout.decode(), stderr.decode())


class Desk:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.errands = 0

    async def text(self, *words: str) -> str:
        outcome = await fairlead(*words)
        assert outcome.code == 0, f"{' '.join(words)}: {outcome.stderr.strip()}"
        return outcome.stdout

    async def json(self, *words: str) -> Any:
        return json.loads(await self.text(*words, "--json"))

    def about(self, kind: str, *words: str) -> list[str]:
        return [*words, "--task-queue", self.stage.name, "--task-queue-type", kind]

    async def workflows(self, *words: str) -> Any:
        """A command about the queue of the workflow tasks."""
        return await self.json(*self.about("workflow", *words))

    async def activities(self, *words: str) -> Any:
        """A command about the queue of the activity tasks."""
        return await self.json(*self.about("activity", *words))

    async def explain(self, handle: WorkflowHandle, *words: str) -> Any:
        return await self.json("explain", "--workflow-id", handle.id, *words)

    async def send(self, key: str, level: int = 3) -> WorkflowHandle:
        """Starts an errand: a workflow with one activity. Nobody works on it before a worker is there."""
        self.errands += 1
        return await self.stage.start(
            Errand.run,
            key,
            id=f"{self.stage.name}-{self.errands}",
            priority=Priority(priority_key=level, fairness_key=key),
        )
