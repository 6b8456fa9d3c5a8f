"""Workflows that clean up when they are asked to stop."""

import time

from durable_workflow import activity, workflow
from durable_workflow.errors import WorkflowCancelled

import app


@activity.defn(name="clean")
def clean(what: str) -> str:
    return f"cleaned {what}"


@activity.defn(name="endless")
def endless(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def cleanup(ctx):
    with ctx.cancellation_shield():
        one = yield ctx.schedule_activity("clean", ["one"])
        others = yield [ctx.schedule_activity("clean", [n]) for n in ("two", "three")]
    return [one, *others]


@workflow.defn(name="stoppable")
class Stoppable:
    """Waits in one of the ways that there are."""

    def __init__(self):
        self.never = False

    @workflow.query("where")
    def where(self):
        return "here"

    def waits(self, ctx, kind):
        if kind == "timer":
            return ctx.start_timer(3600)
        if kind == "condition":
            return ctx.wait_condition(lambda: self.never, key="never", timeout=3600)
        if kind == "activity":
            return ctx.schedule_activity("endless", [30], queue="nobody-works-here")
        if kind == "parallel":
            return [ctx.start_timer(3600), [ctx.start_timer(3600), ctx.schedule_activity("clean", ["now"])]]
        if kind == "select":
            return ctx.select({
                "time": ctx.start_timer(3600),
                "met": ctx.wait_condition(lambda: self.never, key="never"),
                "work": ctx.schedule_activity("endless", [30], queue="nobody-works-here"),
            })
        raise ValueError(kind)

    def run(self, ctx, kind):
        before = yield ctx.schedule_activity("clean", ["before"])
        try:
            if kind == "handle":
                first = yield ctx.select({"soon": ctx.start_timer(0), "late": ctx.start_timer(3600)})
                yield first.handles["late"]
            else:
                yield self.waits(ctx, kind)
        except WorkflowCancelled as error:
            assert error.context is not None and error.context.remaining() > 0
            done = yield from cleanup(ctx)
            return [before, *done]
        return "not stopped"


@workflow.defn(name="stop-passing")
class StopPassing:
    """Lets the exception pass."""

    def run(self, ctx):
        yield ctx.start_timer(3600)


@workflow.defn(name="stop-shielded")
class StopShielded:
    """Is asked while it must not be disturbed."""

    def run(self, ctx):
        with ctx.cancellation_shield():
            pair = yield [ctx.schedule_activity("endless", [0.2]), ctx.start_timer(2)]
        try:
            yield ctx.start_timer(3600)
        except WorkflowCancelled:
            with ctx.cancellation_shield():
                yield ctx.schedule_activity("clean", [str(pair)])
        return "done"


@workflow.defn(name="stop-recording")
class StopRecording:
    """Has something to record before it comes to a call."""

    def run(self, ctx):
        number = yield ctx.side_effect(lambda: 7)
        try:
            yield ctx.start_timer(3600)
        except WorkflowCancelled:
            with ctx.cancellation_shield():
                yield ctx.schedule_activity("clean", [str(number)])
        return "done"


@workflow.defn(name="stop-local")
class StopLocal:
    def run(self, ctx):
        try:
            yield ctx.local_activity("clean", ["local"])
            yield ctx.start_timer(3600)
        except WorkflowCancelled:
            with ctx.cancellation_shield():
                yield ctx.local_activity("clean", ["up"])
        return "done"


@workflow.defn(name="stop-working")
class StopWorking:
    """Waits for work that a worker has begun."""

    def run(self, ctx, policy):
        try:
            yield ctx.schedule_activity("endless", [60], cancellation_policy=policy, schedule_to_close_timeout=120)
        except WorkflowCancelled:
            with ctx.cancellation_shield():
                yield ctx.schedule_activity("clean", [policy])
        return "done"


@workflow.defn(name="stop-family")
class StopFamily:
    def run(self, ctx, policy):
        try:
            yield ctx.start_child_workflow("stoppable", ["timer"], cancellation_policy=policy,
                                           parent_close_policy="request_cancellation")
        except WorkflowCancelled:
            with ctx.cancellation_shield():
                yield ctx.schedule_activity("clean", ["parent"])
        return "done"


@workflow.defn(name="stop-leaving")
class StopLeaving:
    """Ends before its child does."""

    def run(self, ctx):
        yield ctx.select({"child": ctx.start_child_workflow("stoppable", ["timer"],
                                                            parent_close_policy="request_cancellation"),
                          "time": ctx.start_timer(1)})
        return "gone"


WORKFLOWS = [*app.WORKFLOWS, Stoppable, StopPassing, StopShielded, StopRecording, StopLocal, StopWorking, StopFamily,
             StopLeaving]
ACTIVITIES = [*app.ACTIVITIES, clean, endless]
