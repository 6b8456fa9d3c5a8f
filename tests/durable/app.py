"""Workflows and activities that the tests start, as a user of the SDK would write them."""

import asyncio
import time

from durable_workflow import activity, workflow

calls: dict[str, int] = {}


def count(key: str) -> int:
    calls[key] = calls.get(key, 0) + 1
    return calls[key]


@activity.defn(name="greet")
def greet(name: str) -> str:
    return f"hello, {name}"


@activity.defn(name="double")
def double(number: int) -> int:
    return number * 2


@activity.defn(name="break")
def break_always(message: str) -> str:
    raise ValueError(message)


@activity.defn(name="flaky")
def flaky(key: str, failures: int) -> int:
    attempt = count(key)
    if attempt <= failures:
        raise RuntimeError(f"attempt {attempt}")
    return attempt


@activity.defn(name="beating")
async def beating(beats: int) -> int:
    for i in range(beats):
        await activity.context().heartbeat({"beat": i})
        await asyncio.sleep(0.05)
    return beats


@activity.defn(name="slow")
def slow(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


@workflow.defn(name="greeter")
class Greeter:
    def run(self, ctx, name):
        result = yield ctx.schedule_activity("greet", [name])
        return result


@workflow.defn(name="approval")
class Approval:
    def __init__(self):
        self.approved_by = None
        self.notes = []

    @workflow.signal("approve")
    def approve(self, who):
        self.approved_by = who

    @workflow.signal("note")
    def note(self, text):
        self.notes.append(text)

    @workflow.query("status")
    def status(self):
        return {"approved_by": self.approved_by, "notes": self.notes}

    def run(self, ctx):
        yield ctx.wait_condition(lambda: self.approved_by is not None, key="approved")
        result = yield ctx.schedule_activity("greet", [self.approved_by])
        return {"greeting": result, "notes": self.notes}


@workflow.defn(name="impatient")
class Impatient:
    def run(self, ctx, seconds):
        met = yield ctx.wait_condition(lambda: False, key="never", timeout=seconds)
        yield ctx.sleep(1)
        return met


@workflow.defn(name="parallel")
class Parallel:
    def run(self, ctx, numbers):
        return (yield [ctx.schedule_activity("double", [n]) for n in numbers])


@workflow.defn(name="nested")
class Nested:
    def run(self, ctx):
        return (
            yield [
                ctx.schedule_activity("double", [1]),
                [ctx.schedule_activity("double", [2]), ctx.schedule_activity("double", [3])],
                ctx.sleep(1),
            ]
        )


@workflow.defn(name="parallel-failing")
class ParallelFailing:
    def run(self, ctx):
        try:
            yield [ctx.schedule_activity("slow", [0.5]), ctx.schedule_activity("break", ["no"])]
        except Exception as error:
            return f"caught {type(error).__name__}"
        return "not reached"


@workflow.defn(name="child")
class Child:
    def run(self, ctx, name):
        greeting = yield ctx.schedule_activity("greet", [name])
        return greeting.upper()


@workflow.defn(name="timid")
class Timid:
    def run(self, ctx):
        yield ctx.sleep(1)
        return "done"


@workflow.defn(name="failing")
class Failing:
    def run(self, ctx):
        raise ValueError("on purpose")
        yield


@workflow.defn(name="parent")
class Parent:
    def run(self, ctx):
        one = yield ctx.start_child_workflow("child", ["ada"])
        two = yield [ctx.start_child_workflow("child", [n]) for n in ("bo", "cy")]
        try:
            yield ctx.start_child_workflow("failing")
        except Exception as error:
            return [one, *two, type(error).__name__]


@workflow.defn(name="bookkeeper")
class Bookkeeper:
    def run(self, ctx):
        chance = yield ctx.side_effect(lambda: 42)
        version = yield ctx.get_version("shape", 1, 3)
        patched = yield ctx.patched("fix")
        yield ctx.upsert_search_attributes({"tenant": "acme", "rank": 3, "tags": ["a", "b"]})
        yield ctx.upsert_memo({"note": "kept", "depth": {"x": [1, 2]}})
        greeting = yield ctx.schedule_activity("greet", ["books"])
        return [chance, version, patched, greeting]


@workflow.defn(name="retrier")
class Retrier:
    def run(self, ctx, key, failures, attempts):
        return (
            yield ctx.schedule_activity(
                "flaky", [key, failures],
                retry_policy={"max_attempts": attempts, "backoff_seconds": [0, 1]},
            )
        )


@workflow.defn(name="breaker")
class Breaker:
    def run(self, ctx):
        try:
            yield ctx.schedule_activity("break", ["for good"])
        except Exception as error:
            return f"{type(error).__name__}: {error}"


@workflow.defn(name="heart")
class Heart:
    def run(self, ctx):
        return (yield ctx.schedule_activity("beating", [3], heartbeat_timeout=5))


@workflow.defn(name="late")
class Late:
    def run(self, ctx):
        try:
            yield ctx.schedule_activity("slow", [3], start_to_close_timeout=1)
        except Exception as error:
            return type(error).__name__


@workflow.defn(name="counter")
class Counter:
    def run(self, ctx, left):
        yield ctx.schedule_activity("double", [left])
        if left > 0:
            return ctx.continue_as_new(left - 1)
        return "done"


@workflow.defn(name="account")
class Account:
    def __init__(self):
        self.balance = 0
        self.closed = False

    @workflow.update("deposit")
    def deposit(self, amount):
        if amount < 0:
            raise ValueError("a deposit is not negative")
        self.balance += amount
        return self.balance

    @workflow.update("close")
    def close(self):
        self.closed = True
        return "closing"

    @workflow.query("balance")
    def get_balance(self):
        return self.balance

    def run(self, ctx):
        yield ctx.wait_condition(lambda: self.closed, key="closed")
        return self.balance


@workflow.defn(name="distracted")
class Distracted:
    def __init__(self):
        self.seen = []

    @workflow.signal("tell")
    def tell(self, what):
        self.seen.append(what)

    def run(self, ctx):
        yield ctx.schedule_activity("slow", [1])
        yield ctx.wait_condition(lambda: len(self.seen) > 0, key="told")
        return self.seen


@workflow.defn(name="local")
class Local:
    def run(self, ctx):
        first = yield ctx.local_activity("greet", ["local"])
        second = yield ctx.schedule_activity("greet", ["remote"])
        return [first, second]


@workflow.defn(name="marathon")
class Marathon:
    def run(self, ctx, steps):
        total = 0
        for i in range(steps):
            total += yield ctx.schedule_activity("double", [i])
        return total


@workflow.defn(name="race")
class Race:
    """An activity against a time that never comes; what has lost is called off."""

    def run(self, ctx, name):
        first = yield ctx.select({"work": ctx.schedule_activity("greet", [name]), "deadline": ctx.sleep(3600)})
        yield first.handles["deadline"].cancel()
        again = yield ctx.schedule_activity("greet", [first.key])
        numbers = yield [ctx.schedule_activity("double", [n]) for n in (1, 2)]
        return [first.value, again, numbers]


@workflow.defn(name="race-waiting")
class RaceWaiting:
    """A condition against a time."""

    def __init__(self):
        self.approved_by = None

    @workflow.signal("approve")
    def approve(self, who):
        self.approved_by = who

    @workflow.update("approve-now")
    def approve_now(self, who):
        self.approved_by = who
        return "thanks"

    @workflow.query("status")
    def status(self):
        return self.approved_by

    def run(self, ctx, seconds):
        first = yield ctx.select(
            {
                "approved": ctx.wait_condition(lambda: self.approved_by is not None, key="approved"),
                "deadline": ctx.sleep(seconds),
            }
        )
        for handle in first.remaining().values():
            yield handle.cancel()
        return [first.key, self.approved_by]


@workflow.defn(name="race-impatient")
class RaceImpatient:
    """A condition with a time of its own."""

    def run(self, ctx):
        first = yield ctx.select(
            {"never": ctx.wait_condition(lambda: False, key="never", timeout=1), "deadline": ctx.sleep(3600)}
        )
        return [first.key, first.value]


@workflow.defn(name="race-all")
class RaceAll:
    """Whoever wins: in the end all have come."""

    def run(self, ctx):
        first = yield ctx.select(
            {
                "one": ctx.schedule_activity("double", [1]),
                "two": [ctx.schedule_activity("double", [2]), ctx.schedule_activity("double", [3])],
                "child": ctx.start_child_workflow("child", ["ada"]),
                "nap": ctx.sleep(1),
            }
        )
        values = {first.key: first.result()}
        for key, handle in first.remaining().items():
            values[key] = yield handle
        return values


@workflow.defn(name="race-failing")
class RaceFailing:
    def run(self, ctx):
        first = yield ctx.select({"bad": ctx.schedule_activity("break", ["no"]), "deadline": ctx.sleep(3600)})
        return [first.key, first.succeeded, type(first.failure).__name__]


WORKFLOWS = [
    Greeter, Approval, Impatient, Parallel, Nested, ParallelFailing, Child, Timid, Failing, Parent, Bookkeeper, Retrier,
    Breaker, Heart, Late, Counter, Account, Distracted, Local, Marathon, Race, RaceWaiting, RaceImpatient, RaceAll,
    RaceFailing,
]
ACTIVITIES = [greet, double, break_always, flaky, beating, slow]
