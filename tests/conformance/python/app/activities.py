"""Activities whose behaviour the tests steer through their arguments."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from temporalio import activity
from temporalio.exceptions import ApplicationError


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@activity.defn
async def succeed_on_attempt(wanted: int) -> int:
    """Fails until the wanted attempt and returns the attempt's number."""
    attempt = activity.info().attempt
    if attempt < wanted:
        raise ApplicationError(f"attempt {attempt} is too early", type="TooEarly")
    return attempt


@dataclass
class Charge:
    amount: int
    error_type: str
    non_retryable: bool = False


@activity.defn
async def decline(charge: Charge) -> None:
    raise ApplicationError(
        f"card declined on attempt {activity.info().attempt}",
        {"amount": charge.amount},
        type=charge.error_type,
        non_retryable=charge.non_retryable,
    )


@activity.defn
async def resume_from_heartbeat() -> list[int]:
    """Heartbeats its progress, fails once, and returns what the second attempt was told."""
    info = activity.info()
    if info.attempt == 1:
        for done in range(1, 4):
            activity.heartbeat(done, "rows")
        raise ApplicationError("crashed at row 3")
    return [info.attempt, *info.heartbeat_details[:1]]


@activity.defn
async def outlive_every_timeout() -> None:
    """Never heartbeats and never ends by itself; the worker's shutdown cancels it."""
    await asyncio.Event().wait()


@dataclass
class Seat:
    """The priority an activity runs with, as its own info tells it."""

    level: int | None
    tenant: str | None
    weight: float | None


@activity.defn
async def read_priority() -> Seat:
    priority = activity.info().priority
    return Seat(priority.priority_key, priority.fairness_key, priority.fairness_weight)


class Watched:
    """Activities that tell the test, which runs in the worker's process, how far they are."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.task_token = b""
        self.info: activity.Info | None = None

    @activity.defn
    async def heartbeat_until_cancelled(self) -> None:
        self.started.set()
        try:
            while True:
                activity.heartbeat("still here")
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    @activity.defn
    async def leave_to_someone_else(self) -> str:
        self.info = activity.info()
        self.task_token = self.info.task_token
        self.started.set()
        activity.raise_complete_async()
