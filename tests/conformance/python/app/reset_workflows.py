"""Workflows whose runs are begun again from the middle."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from app.activities import greet


@workflow.defn
class Ledger:
    """Adds up what updates and signals bring until it is told to close."""

    def __init__(self) -> None:
        self.entries: list[int] = []
        self.is_closed = False

    @workflow.run
    async def run(self) -> list[int]:
        await workflow.wait_condition(lambda: self.is_closed)
        return self.entries

    @workflow.update
    def add(self, amount: int) -> int:
        self.entries.append(amount)
        return sum(self.entries)

    @workflow.signal
    def note(self, amount: int) -> None:
        self.entries.append(amount)

    @workflow.signal
    def close(self) -> None:
        self.is_closed = True

    @workflow.query
    def total(self) -> int:
        return sum(self.entries)


@workflow.defn
class GreetTwice:
    """Two activities in a row, a random number between them, and a timer at the end."""

    @workflow.run
    async def run(self, name: str) -> list[str]:
        first = await workflow.execute_activity(
            greet, name, start_to_close_timeout=timedelta(seconds=10)
        )
        ticket = workflow.random().randint(0, 1_000_000_000)
        second = await workflow.execute_activity(
            greet, f"{name} again", start_to_close_timeout=timedelta(seconds=10)
        )
        await workflow.sleep(timedelta(milliseconds=20))
        return [first, second, str(ticket)]


@workflow.defn
class Foreman:
    """Waits for a child that waits for a signal, but first for a signal of its own."""

    def __init__(self) -> None:
        self.notes: list[int] = []

    @workflow.run
    async def run(self) -> list[int]:
        child = await workflow.start_child_workflow(
            Ledger.run, id=f"{workflow.info().workflow_id}-child"
        )
        await workflow.wait_condition(lambda: bool(self.notes))
        return self.notes + await child

    @workflow.signal
    def note(self, amount: int) -> None:
        self.notes.append(amount)


@workflow.defn
class Volumes:
    """Continues as new at the first signal, and ends at the second."""

    def __init__(self) -> None:
        self.notes: list[int] = []

    @workflow.run
    async def run(self, volume: int) -> list[int]:
        await workflow.wait_condition(lambda: bool(self.notes))
        if volume == 1 and len(self.notes) == 1:
            workflow.continue_as_new(2)
        return self.notes

    @workflow.signal
    def note(self, amount: int) -> None:
        self.notes.append(amount)
