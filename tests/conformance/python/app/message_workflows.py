"""Workflows that wait for signals, answer queries, sleep and end in different ways."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from app.activities import greet


@workflow.defn
class Inbox:
    """Collects letters until it is told to close; tells how many it has when asked."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.is_closed = False

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.is_closed)
        return self.letters

    @workflow.signal
    def deliver(self, letter: str) -> None:
        self.letters.append(letter)

    @workflow.signal
    def close(self) -> None:
        self.is_closed = True

    @workflow.query
    def count(self) -> int:
        return len(self.letters)

    @workflow.query
    def letter(self, index: int) -> str:
        if index >= len(self.letters):
            raise ValueError(f"there is no letter {index}")
        return self.letters[index]


@workflow.defn
class Sleep:
    @workflow.run
    async def run(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "awake"


@workflow.defn
class SleepUntilWoken:
    """Races a day-long timer against a signal; the loser is cancelled."""

    def __init__(self) -> None:
        self.is_woken = False

    @workflow.run
    async def run(self) -> str:
        try:
            await workflow.wait_condition(
                lambda: self.is_woken, timeout=timedelta(days=1)
            )
        except asyncio.TimeoutError:
            return "slept in"
        return "woken"

    @workflow.signal
    def wake(self) -> None:
        self.is_woken = True


@workflow.defn
class Refuse:
    @workflow.run
    async def run(self, order: str) -> None:
        raise ApplicationError(
            f"order {order} is out of stock",
            {"order": order, "left": 0},
            type="OutOfStock",
            non_retryable=True,
        )


@workflow.defn
class CleanUpWhenCancelled:
    @workflow.run
    async def run(self) -> str:
        try:
            await asyncio.sleep(24 * 60 * 60)
        except asyncio.CancelledError:
            return "cleaned up"
        return "slept in"


@workflow.defn(name="Greeting")
class BrokenGreeting:
    """A version that somebody deployed by mistake: the bug fails the task, not the workflow."""

    @workflow.run
    async def run(self, name: str) -> str:
        raise RuntimeError("nobody tested this version")


@workflow.defn(name="Greeting")
class FixedGreeting:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"Hello, {name}!"


@workflow.defn(name="Journey")
class JourneyBeforePatch:
    """Draws a random ticket, waits and travels; the patched version has to replay it."""

    def __init__(self) -> None:
        self.may_go_on = False
        self.number = ""

    @workflow.run
    async def run(self) -> str:
        self.number = str(workflow.uuid4())
        await workflow.wait_condition(lambda: self.may_go_on)
        await asyncio.sleep(0.01)
        return f"old road {self.number}"

    @workflow.signal
    def go_on(self) -> None:
        self.may_go_on = True

    @workflow.query
    def ticket(self) -> str:
        return self.number


@workflow.defn(name="Journey")
class JourneyAfterPatch(JourneyBeforePatch):
    @workflow.run
    async def run(self) -> str:
        takes_new_road = workflow.patched("new-road")
        self.number = str(workflow.uuid4())
        await workflow.wait_condition(lambda: self.may_go_on)
        if takes_new_road:
            greeting = await workflow.execute_activity(
                greet, "traveller", start_to_close_timeout=timedelta(minutes=1)
            )
            return f"new road {greeting}"
        await asyncio.sleep(0.01)
        return f"old road {self.number}"
