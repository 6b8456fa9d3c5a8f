"""Shows that differences are found, named and explained as they should be. Needs no server."""

from __future__ import annotations

from collections.abc import Iterator

from compare import ABSENT, Difference, Explained, differences, unexplained
from google.protobuf.duration_pb2 import Duration
from temporalio.api.history.v1 import HistoryEvent
from tree import RunNames, duration_text, tree_of

RUN = "018f0000-0000-7000-8000-000000000001"


def found(theirs: dict, ours: dict) -> list[Difference]:
    return list(differences("s", theirs, ours))


def events(*types: str) -> list[dict]:
    return [{"event_type": kind} for kind in types]


def checks() -> Iterator[tuple[str, bool]]:
    yield "equal trees have no differences", found({"a": [1, {"b": "c"}]}, {"a": [1, {"b": "c"}]}) == []
    yield "a difference has its path", found({"a": {"b": 1}}, {"a": {"b": 2}}) == [Difference("s/a/b", "1", "2")]
    yield "a field may be missing on either side", found({"a": 1}, {"b": 1}) == [
        Difference("s/a", "1", ABSENT),
        Difference("s/b", ABSENT, "1"),
    ]
    refused = {"refused": {"code": "NOT_FOUND"}}
    yield "a refusal against an answer is one difference", len(found(refused, {"a": 1, "b": 2})) == 1
    yield "events that are missing are told once", found({"events": events("A", "B")}, {"events": events("B")}) == [
        Difference("s/events", "A, B", "B")
    ]

    entry = Explained("row", ["s/*/b"], theirs="1", ours="<absent>")
    stale = Explained("row", ["s/nothing"])
    wanted, other = Difference("s/a/b", "1", ABSENT), Difference("s/a/b", "2", ABSENT)
    yield "an entry explains what it matches, and no more", unexplained([wanted, other], [entry, stale]) == [other]
    yield "an entry that was needed is not stale", entry.unseen == []
    yield "an entry that was not needed is", stale.unseen == ["s/nothing"]

    runs = RunNames()
    runs.add("order", RUN)
    event = HistoryEvent(event_id=1, task_id=7, event_time={"seconds": 5})
    event.workflow_execution_started_event_attributes.original_execution_run_id = RUN
    expected = {"original_execution_run_id": "<order 1>"}
    tree = tree_of(event, runs)
    yield "runs are named", tree["attributes"] == expected
    yield "times and numbers of tasks are hidden", (tree["event_time"], tree["task_id"]) == ("<time>", "<task id>")
    yield "durations that were asked for are shown", duration_text(Duration(nanos=500_000_000)) == "0.5s"
    yield "durations that were measured are not", duration_text(Duration(nanos=123_456_789)) == "<at most 1s>"


def run() -> bool:
    good = True
    for name, is_true in checks():
        print(f"{'ok' if is_true else 'not ok'} - differential: self-test: {name}", flush=True)
        good &= is_true
    return good
