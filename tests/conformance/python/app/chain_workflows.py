"""Workflows that live through several runs: continued as new, retried or on a schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from app.activities import Seat


def own_seat() -> Seat:
    priority = workflow.info().priority
    return Seat(priority.priority_key, priority.fairness_key, priority.fairness_weight)


@dataclass
class Relay:
    """How many runners are still to come, and who ran before them with which priority."""

    left: int
    run_ids: list[str] = field(default_factory=list)
    seats: list[Seat] = field(default_factory=list)


@workflow.defn
class RunRelay:
    """Hands over to a new run until nobody is left; the last one tells of all."""

    @workflow.run
    async def run(self, relay: Relay) -> Relay:
        relay = Relay(
            relay.left - 1,
            [*relay.run_ids, workflow.info().run_id],
            [*relay.seats, own_seat()],
        )
        if relay.left > 0:
            workflow.continue_as_new(relay)
        return relay


@workflow.defn
class SucceedOnRun:
    """Fails until the wanted attempt and returns the attempt's number."""

    @workflow.run
    async def run(self, wanted: int) -> int:
        attempt = workflow.info().attempt
        if attempt < wanted:
            raise ApplicationError(f"run {attempt} is too early", type="TooEarly")
        return attempt


@workflow.defn
class KeepDiary:
    """Adds a page to what the last successful run left behind; the second run fails instead."""

    @workflow.run
    async def run(self) -> list[str]:
        pages: list[str] = []
        if workflow.has_last_completion_result():
            pages = workflow.get_last_completion_result(list[str])
        if failure := workflow.get_last_failure():
            return [*pages, f"a late page, since {failure}"]
        if len(pages) == 1:
            raise ApplicationError("the pencil broke")
        return [*pages, "a page"]
