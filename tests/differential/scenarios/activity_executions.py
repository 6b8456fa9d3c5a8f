"""Operators' commands that name one activity: of a workflow, or without one."""

from __future__ import annotations

from google.protobuf.message import Message
from payload import complete_workflow, failure, payloads, schedule_activity, seconds
from registry import scenario
from scenarios import standalone
from world import World

SOON = {"initial_interval": seconds(1), "backoff_coefficient": 1}
LATE = {"initial_interval": seconds(50)}


class Hosted:
    """An activity of a workflow."""

    def __init__(self, world: World, **fields) -> None:
        self._world = world
        world.start()
        world.turn(schedule_activity(**fields))

    def names(self) -> dict:
        return {"workflow_id": self._world.id(), "activity_id": "activity"}

    def describe(self) -> None:
        self._world.describe()

    def end(self) -> None:
        self._world.turn(complete_workflow())


class Lone:
    """An activity without a workflow."""

    def __init__(self, world: World, **fields) -> None:
        self._world = world
        standalone.start(world, **fields)

    def names(self) -> dict:
        return {"activity_id": self._world.id("activity")}

    def describe(self) -> None:
        standalone.describe(self._world)

    def end(self) -> None:
        standalone.outcome(self._world)


Activity = Hosted | Lone


def operate(world: World, activity: Activity, rpc: str, **fields) -> Message:
    return world.attempt(rpc, **(activity.names() | fields))


def pause(world: World, activity: Activity, **fields) -> Message:
    return operate(world, activity, "PauseActivityExecution", **fields)


def unpause(world: World, activity: Activity, **fields) -> Message:
    return operate(world, activity, "UnpauseActivityExecution", **fields)


def reset(world: World, activity: Activity, **fields) -> Message:
    return operate(world, activity, "ResetActivityExecution", **fields)


def change(world: World, activity: Activity, options: dict, **fields) -> Message:
    fields = {"update_mask": {"paths": list(options)}} | fields
    return operate(world, activity, "UpdateActivityExecutionOptions", activity_options=options, **fields)


# ---- what is done to both ------------------------------------------------------------------------


def paused_while_it_waits(world: World, activity: Activity) -> None:
    pause(world, activity, reason="a holiday", request_id="pause-1")
    activity.describe()
    pause(world, activity, reason="a holiday", request_id="pause-1")
    pause(world, activity, reason="another holiday", request_id="pause-2")
    unpause(world, activity, reason="enough", request_id="unpause-1")
    activity.describe()
    world.finish_activity(world.poll_activity())
    activity.end()


def paused_at_work(world: World, activity: Activity) -> None:
    task = world.poll_activity()
    pause(world, activity, reason="stop", request_id="pause-1")
    activity.describe()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    world.fail_activity(task, failure("paused"))
    activity.describe()
    unpause(world, activity)
    world.finish_activity(world.poll_activity())
    activity.end()


def reset_while_it_backs_off(world: World, activity: Activity) -> None:
    task = world.poll_activity()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    world.fail_activity(task, failure("first"))
    reset(world, activity, request_id="reset-1")
    world.finish_activity(world.poll_activity())
    activity.end()


def reset_while_it_is_paused(world: World, activity: Activity) -> None:
    world.fail_activity(world.poll_activity(), failure("first"))
    pause(world, activity)
    reset(world, activity, keep_paused=True, reset_heartbeat=True)
    activity.describe()
    reset(world, activity, request_id="reset-2")
    world.finish_activity(world.poll_activity())
    activity.end()


def options_changed(world: World, activity: Activity) -> None:
    options = {
        "schedule_to_close_timeout": seconds(90),
        "schedule_to_start_timeout": seconds(80),
        "start_to_close_timeout": seconds(70),
        "heartbeat_timeout": seconds(60),
        "priority": {"priority_key": 2, "fairness_key": "tenant"},
    }
    change(world, activity, options, request_id="change-1")
    activity.describe()
    change(world, activity, {"retry_policy": {"maximum_attempts": 9}}, update_mask={"paths": ["retryPolicy.maximumAttempts"]})
    operate(world, activity, "UpdateActivityExecutionOptions", restore_original=True)
    activity.describe()
    world.finish_activity(world.poll_activity())
    activity.end()


def options_restored_by_a_reset(world: World, activity: Activity) -> None:
    change(world, activity, {"start_to_close_timeout": seconds(7)})
    reset(world, activity, restore_original_options=True)
    activity.describe()


def nothing_to_operate_on(world: World, activity: Activity) -> None:
    rpcs = ["PauseActivityExecution", "UnpauseActivityExecution", "ResetActivityExecution"]
    for rpc in rpcs:
        operate(world, activity, rpc, activity_id="nobody")
        operate(world, activity, rpc, activity_id="")
        operate(world, activity, rpc, run_id="not a run")
        operate(world, activity, rpc, namespace="nowhere")
        operate(world, activity, rpc, identity="i" * 1001)
        operate(world, activity, rpc, request_id="r" * 1001)
    change(world, activity, {"heartbeat_timeout": seconds(1)}, activity_id="nobody")
    change(world, activity, {"heartbeat_timeout": seconds(1)}, update_mask=None)
    change(world, activity, {}, update_mask={"paths": ["priority"]})
    world.finish_activity(world.poll_activity())
    activity.end()
    for rpc in rpcs:
        operate(world, activity, rpc)
    change(world, activity, {"heartbeat_timeout": seconds(1)})


def unpaused_with_jitter(world: World, activity: Activity) -> None:
    """A random part of it is waited for; that it comes at all, and with what, is the same."""
    pause(world, activity)
    unpause(world, activity, jitter=seconds(1))
    world.finish_activity(world.poll_activity())
    activity.end()


def reset_with_jitter(world: World, activity: Activity) -> None:
    world.fail_activity(world.poll_activity(), failure("first"))
    reset(world, activity, jitter=seconds(1))
    world.finish_activity(world.poll_activity())
    activity.end()


# ---- of a workflow -------------------------------------------------------------------------------


@scenario
def hosted_is_paused_while_it_waits(world: World) -> None:
    paused_while_it_waits(world, Hosted(world, retry_policy=SOON))


@scenario
def hosted_is_paused_at_work(world: World) -> None:
    paused_at_work(world, Hosted(world, retry_policy=SOON))


@scenario
def hosted_is_reset_while_it_backs_off(world: World) -> None:
    reset_while_it_backs_off(world, Hosted(world, retry_policy=LATE))


@scenario
def hosted_is_reset_while_it_is_paused(world: World) -> None:
    reset_while_it_is_paused(world, Hosted(world, retry_policy=LATE))


@scenario
def hosted_gets_other_options(world: World) -> None:
    options_changed(world, Hosted(world, retry_policy=SOON))


@scenario
def hosted_gets_its_options_back(world: World) -> None:
    options_restored_by_a_reset(world, Hosted(world, retry_policy=SOON))


@scenario
def hosted_is_not_there(world: World) -> None:
    nothing_to_operate_on(world, Hosted(world))


@scenario
def hosted_is_unpaused_with_jitter(world: World) -> None:
    unpaused_with_jitter(world, Hosted(world, retry_policy=SOON))


@scenario
def hosted_is_reset_with_jitter(world: World) -> None:
    reset_with_jitter(world, Hosted(world, retry_policy=LATE))


# ---- without one ---------------------------------------------------------------------------------


@scenario
def lone_is_paused_while_it_waits(world: World) -> None:
    paused_while_it_waits(world, Lone(world, retry_policy=SOON))


@scenario
def lone_is_paused_at_work(world: World) -> None:
    paused_at_work(world, Lone(world, retry_policy=SOON))


@scenario
def lone_is_reset_while_it_backs_off(world: World) -> None:
    reset_while_it_backs_off(world, Lone(world, retry_policy=LATE))


@scenario
def lone_is_reset_while_it_is_paused(world: World) -> None:
    reset_while_it_is_paused(world, Lone(world, retry_policy=LATE))


@scenario
def lone_gets_other_options(world: World) -> None:
    options_changed(world, Lone(world, retry_policy=SOON))


@scenario
def lone_gets_its_options_back(world: World) -> None:
    options_restored_by_a_reset(world, Lone(world, retry_policy=SOON))


@scenario
def lone_is_not_there(world: World) -> None:
    nothing_to_operate_on(world, Lone(world))


@scenario
def lone_is_unpaused_with_jitter(world: World) -> None:
    unpaused_with_jitter(world, Lone(world, retry_policy=SOON))


@scenario
def lone_is_reset_with_jitter(world: World) -> None:
    reset_with_jitter(world, Lone(world, retry_policy=LATE))
