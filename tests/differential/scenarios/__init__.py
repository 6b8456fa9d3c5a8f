"""The scenarios. A module here is a subject; a function marked `@scenario` is a script, told to a World."""

from __future__ import annotations

import importlib
import pkgutil

from registry import SCENARIOS, Scenario

for module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{module}")

__all__ = ["SCENARIOS", "Scenario"]
