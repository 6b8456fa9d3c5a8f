"""Finds the differences between two trees, and tells the explained from the others."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any as Tree

ABSENT = "<absent>"


@dataclass(frozen=True)
class Difference:
    path: str
    theirs: str
    ours: str

    def __str__(self) -> str:
        return f"{self.path}\n    theirs  {self.theirs}\n    ours    {self.ours}"


def text_of(value: Tree) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def differences(path: str, theirs: Tree, ours: Tree) -> Iterator[Difference]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if ("refused" in theirs) != ("refused" in ours):
            yield Difference(path, text_of(theirs), text_of(ours))
            return
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            yield from differences(f"{path}/{key}", theirs.get(key, ABSENT), ours.get(key, ABSENT))
    elif isinstance(theirs, list) and isinstance(ours, list):
        yield from list_differences(path, theirs, ours)
    elif theirs != ours:
        yield Difference(path, text_of(theirs), text_of(ours))


def list_differences(path: str, theirs: list[Tree], ours: list[Tree]) -> Iterator[Difference]:
    their_labels, our_labels = [label(item) for item in theirs], [label(item) for item in ours]
    if their_labels != our_labels:
        # After a missing event all numbers differ, and say nothing more.
        yield Difference(path, ", ".join(their_labels), ", ".join(our_labels))
        return
    for number, name in enumerate(their_labels):
        yield from differences(f"{path}/{number + 1} {name}".rstrip(), theirs[number], ours[number])


def label(item: Tree) -> str:
    """What an item of a list is, whatever its details."""
    return item.get("event_type") or item.get("type", "item") if isinstance(item, dict) else text_of(item)


# ---- what is explained ---------------------------------------------------------------------------


@dataclass
class Explained:
    """One entry of expected.toml. In its patterns a star stands for anything."""

    row: str
    path: list[str]
    theirs: str = "*"
    ours: str = "*"
    # Or what they may be together: a list of [theirs, ours].
    pairs: list[list[str]] = field(default_factory=list)
    # Whether a run may go by without it: for what depends on which of two threads is faster.
    sometimes: bool = False
    # A method that Fairlead has to serve for this to be seen.
    needs: str = ""
    seen: set[str] = field(default_factory=set)

    def covers(self, difference: Difference) -> bool:
        paths = [pattern for pattern in self.path if is_like(pattern, difference.path)]
        pairs = [
            pair
            for pair in self.pairs or [[self.theirs, self.ours]]
            if is_like(pair[0], difference.theirs) and is_like(pair[1], difference.ours)
        ]
        if paths and pairs:
            self.seen.update(paths, *pairs)
        return bool(paths and pairs)

    @property
    def unseen(self) -> list[str]:
        if self.sometimes:
            return []
        return [it for it in [*self.path, *(pair[0] for pair in self.pairs)] if it not in self.seen]


def is_like(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), text, re.DOTALL) is not None


def read_explained(path: Path) -> list[Explained]:
    entries = tomllib.loads(path.read_text())["difference"]
    for entry in entries:
        if isinstance(entry["path"], str):
            entry["path"] = [entry["path"]]
    return [Explained(**entry) for entry in entries]


def unexplained(found: Iterable[Difference], explained: list[Explained]) -> list[Difference]:
    # Every entry is asked, also when another one has answered: it has to learn that it is still needed.
    return [difference for difference in found if not any([entry.covers(difference) for entry in explained])]
