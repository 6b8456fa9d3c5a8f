"""Workflows that are asked to change and that answer: updates in all their variety."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from app.activities import greet


@workflow.defn
class Account:
    """Keeps a balance until it is closed, and a journal of what it was asked to do.

    A patient account first lets the updates finish that it has begun.
    """

    def __init__(self) -> None:
        self.balance = 0
        self.journal: list[str] = []
        self.approved: set[str] = set()
        self.is_closed = False

    @workflow.run
    async def run(self, is_patient: bool = False) -> list[str]:
        await workflow.wait_condition(lambda: self.is_closed)
        if is_patient:
            await workflow.wait_condition(workflow.all_handlers_finished)
        return self.journal

    @workflow.update
    def deposit(self, amount: int) -> int:
        self.balance += amount
        self.journal.append(f"deposit {amount}")
        return self.balance

    @deposit.validator
    def check_deposit(self, amount: int) -> None:
        if amount <= 0:
            raise ValueError(f"{amount} is not an amount")

    @workflow.update
    async def withdraw(self, amount: int) -> int:
        if amount > self.balance:
            raise ApplicationError(
                f"only {self.balance} left",
                {"balance": self.balance},
                type="Overdrawn",
                non_retryable=True,
            )
        self.balance -= amount
        return self.balance

    @workflow.update
    async def transfer(self, to: str) -> str:
        """Waits for somebody to approve it, who may take years."""
        self.journal.append(f"transfer to {to}")
        await workflow.wait_condition(lambda: to in self.approved)
        self.journal.append(f"transferred to {to}")
        return f"{to} has the money"

    @workflow.update
    async def thank(self, name: str) -> list[str]:
        """Thanks by an activity, by a local one, and sleeps over it."""
        limit = timedelta(minutes=1)
        return [
            await workflow.execute_activity(greet, name, start_to_close_timeout=limit),
            await workflow.execute_local_activity(
                greet, f"dear {name}", start_to_close_timeout=limit
            ),
            await asyncio.sleep(0.01, "good night"),
        ]

    @workflow.update
    async def who_asks(self) -> list[str]:
        info = workflow.current_update_info()
        assert info
        await asyncio.sleep(0.01)
        assert info == workflow.current_update_info()
        return [info.name, info.id]

    @workflow.update
    def close_at_once(self) -> str:
        self.is_closed = True
        return f"closed with {self.balance}"

    @workflow.signal
    def approve(self, to: str) -> None:
        self.approved.add(to)

    @workflow.signal
    def close(self) -> None:
        self.is_closed = True

    @workflow.query
    def entries(self) -> list[str]:
        return self.journal


@workflow.defn
class TravellingAccount:
    """Moves its balance to a new run whenever it is told to."""

    @workflow.init
    def __init__(self, balance: int) -> None:
        self.balance = balance
        self.moves = False

    @workflow.run
    async def run(self, balance: int) -> None:
        await workflow.wait_condition(lambda: self.moves)
        workflow.continue_as_new(self.balance)

    @workflow.update
    def deposit(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    @workflow.update
    async def transfer(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def move(self) -> None:
        self.moves = True


@workflow.defn
class LastOrders:
    """Takes a last look around, which is a local activity, and leaves."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.execute_local_activity(
            "look_around", start_to_close_timeout=timedelta(minutes=1)
        )
        return self.orders

    @workflow.update
    def order(self, drink: str) -> str:
        self.orders.append(drink)
        return f"{drink} for you"


@workflow.defn(name="Till")
class BrokenTill:
    """A version that somebody deployed by mistake: the bug fails the task, not the update."""

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    def open(self) -> str:
        raise RuntimeError("nobody tested this version")


@workflow.defn(name="Till")
class FixedTill:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    def open(self) -> str:
        return "open"
