"""The list of scenarios."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    name: str
    script: Callable
    # A method that Fairlead has to serve; the scenario waits until it does.
    needs: str = ""


SCENARIOS: list[Scenario] = []


def scenario(script: Callable, needs: str = "") -> Callable:
    """Puts a script on the list under its own name, which is also the name of its task queue."""
    SCENARIOS.append(Scenario(script.__name__, script, needs))
    return script


def scenario_of(method: str) -> Callable:
    return functools.partial(scenario, needs=method)
