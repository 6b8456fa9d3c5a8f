"""The list of scenarios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    name: str
    script: Callable


SCENARIOS: list[Scenario] = []


def scenario(script: Callable) -> Callable:
    """Puts a script on the list under its own name, which is also the name of its task queue."""
    SCENARIOS.append(Scenario(script.__name__, script))
    return script
