"""Runs the real `temporal` command and reads its JSON."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any


@dataclass
class Outcome:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


async def attempt(
    *words: str, namespace: str | None = None, output: str = "json"
) -> Outcome:
    """Runs the command without an opinion on whether it should succeed."""
    process = await asyncio.create_subprocess_exec(
        os.environ["TEMPORAL_CLI"],
        *words,
        "--address",
        os.environ["FAIRLEAD_ADDRESS"],
        "--namespace",
        namespace or os.environ.get("FAIRLEAD_NAMESPACE", "default"),
        "--output",
        output,
        "--command-timeout",
        "60s",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, stderr = await process.communicate()
    return Outcome(process.returncode, stdout.decode(), stderr.decode())


async def temporal(
    *words: str, namespace: str | None = None, output: str = "json"
) -> Outcome:
    outcome = await attempt(*words, namespace=namespace, output=output)
    assert outcome.code == 0, f"temporal {' '.join(words)}: {outcome.stderr.strip()}"
    return outcome
