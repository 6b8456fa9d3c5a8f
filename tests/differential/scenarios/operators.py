"""Operators' commands: activities are paused, reset and given other options, a workflow another priority."""

from __future__ import annotations

from google.protobuf.message import Message
from payload import complete_workflow, failure, payloads, schedule_activity, seconds
from registry import scenario
from world import World

SOON = {"initial_interval": seconds(1), "backoff_coefficient": 1}
LATE = {"initial_interval": seconds(50)}


def begin(world: World, *activities, **fields) -> None:
    world.start(**fields)
    world.turn(*(activities or [schedule_activity(retry_policy=SOON)]))


def end(world: World) -> None:
    world.turn(complete_workflow())


def operate(world: World, rpc: str, **fields) -> Message:
    if not fields.keys() & {"id", "type", "unpause_all", "match_all"}:
        fields["id"] = "activity"
    return world.attempt(rpc, **({"execution": world.execution()} | fields))


# ---- pause and unpause ---------------------------------------------------------------------------


@scenario
def pause_of_an_activity_that_waits(world: World) -> None:
    begin(world)
    operate(world, "PauseActivity", reason="a holiday", request_id="pause-1")
    world.describe()
    # Once more, as a client that did not hear the answer would, and then for another reason.
    operate(world, "PauseActivity", reason="a holiday", request_id="pause-1")
    operate(world, "PauseActivity", reason="another holiday", request_id="pause-2")
    world.describe()
    operate(world, "UnpauseActivity")
    world.describe()
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def pause_of_an_activity_at_work(world: World) -> None:
    begin(world)
    task = world.poll_activity()
    operate(world, "PauseActivity", reason="stop")
    world.describe()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    world.fail_activity(task, failure("paused"))
    world.describe()
    operate(world, "UnpauseActivity")
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def pause_of_an_activity_that_completes(world: World) -> None:
    begin(world)
    task = world.poll_activity()
    operate(world, "PauseActivity")
    world.finish_activity(task)
    end(world)


@scenario
def pause_of_an_activity_that_backs_off(world: World) -> None:
    begin(world, schedule_activity(retry_policy=LATE))
    world.fail_activity(world.poll_activity(), failure("first"))
    operate(world, "PauseActivity")
    world.describe()
    operate(world, "UnpauseActivity", reset_attempts=True)
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def pause_by_type(world: World) -> None:
    other = schedule_activity("other", activity_type={"name": "Other"})
    begin(world, schedule_activity("one"), schedule_activity("two"), other)
    operate(world, "PauseActivity", type="Act")
    world.describe()
    operate(world, "UnpauseActivity", type="Act")
    world.describe()
    operate(world, "PauseActivity", type="Nobody")
    operate(world, "UnpauseActivity", type="Nobody")


@scenario
def unpause_of_all(world: World) -> None:
    begin(world, schedule_activity("one"), schedule_activity("two"), schedule_activity("three"))
    operate(world, "PauseActivity", id="one")
    operate(world, "PauseActivity", id="two")
    operate(world, "UnpauseActivity", unpause_all=True)
    world.describe()


@scenario
def unpause_with_a_clean_slate(world: World) -> None:
    begin(world)
    task = world.poll_activity()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    operate(world, "PauseActivity")
    world.fail_activity(task, failure("paused"))
    operate(world, "UnpauseActivity", reset_attempts=True, reset_heartbeat=True)
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def unpause_at_a_random_moment(world: World) -> None:
    begin(world)
    operate(world, "PauseActivity")
    operate(world, "UnpauseActivity", jitter=seconds(1))
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def unpause_of_an_activity_that_is_not_paused(world: World) -> None:
    begin(world)
    operate(world, "UnpauseActivity")
    world.describe()


@scenario
def cancellation_of_a_paused_activity(world: World) -> None:
    begin(world)
    task = world.poll_activity()
    operate(world, "PauseActivity")
    world.fail_activity(task, failure("paused"))
    world.request_cancel()
    world.turn(complete_workflow())
    world.describe()


# ---- reset ---------------------------------------------------------------------------------------


@scenario
def activity_reset_while_it_backs_off(world: World) -> None:
    begin(world, schedule_activity(retry_policy=LATE))
    task = world.poll_activity()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    world.fail_activity(task, failure("first"))
    operate(world, "ResetActivity")
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_reset_at_a_random_moment(world: World) -> None:
    begin(world, schedule_activity(retry_policy=LATE))
    world.fail_activity(world.poll_activity(), failure("first"))
    operate(world, "ResetActivity", jitter=seconds(1))
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_reset_with_its_heartbeat(world: World) -> None:
    begin(world, schedule_activity(retry_policy=LATE))
    task = world.poll_activity()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads("half"))
    world.fail_activity(task, failure("first"))
    operate(world, "ResetActivity", reset_heartbeat=True)
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_reset_at_work(world: World) -> None:
    begin(world)
    task = world.poll_activity()
    operate(world, "ResetActivity")
    world.describe()
    world.call("RecordActivityTaskHeartbeat", task_token=task.task_token)
    world.fail_activity(task, failure("reset"))
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_reset_while_it_is_paused(world: World) -> None:
    begin(world, schedule_activity(retry_policy=LATE))
    world.fail_activity(world.poll_activity(), failure("first"))
    operate(world, "PauseActivity")
    operate(world, "ResetActivity", keep_paused=True)
    world.describe()
    operate(world, "ResetActivity")
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_reset_of_all(world: World) -> None:
    begin(world, schedule_activity("one", retry_policy=LATE), schedule_activity("two", retry_policy=LATE))
    tasks = world.poll_activities(2)
    world.fail_activity(tasks["one"], failure("first"))
    world.fail_activity(tasks["two"], failure("first"))
    operate(world, "ResetActivity", match_all=True)
    for task in world.poll_activities(2).values():
        world.finish_activity(task)


# ---- options -------------------------------------------------------------------------------------


@scenario
def activity_options_are_changed(world: World) -> None:
    begin(world)
    options = {
        "schedule_to_close_timeout": seconds(90),
        "schedule_to_start_timeout": seconds(80),
        "start_to_close_timeout": seconds(70),
        "heartbeat_timeout": seconds(60),
        "retry_policy": {"initial_interval": seconds(2), "backoff_coefficient": 3, "maximum_attempts": 7},
        "priority": {"priority_key": 2, "fairness_key": "tenant"},
    }
    operate(world, "UpdateActivityOptions", activity_options=options, update_mask={"paths": list(options)})
    world.describe()
    one = {"retry_policy": {"maximum_attempts": 9}}
    operate(world, "UpdateActivityOptions", activity_options=one, update_mask={"paths": ["retry_policy.maximum_attempts"]})
    world.finish_activity(world.poll_activity())
    end(world)


@scenario
def activity_options_are_restored(world: World) -> None:
    begin(world)
    options = {"start_to_close_timeout": seconds(7)}
    operate(world, "UpdateActivityOptions", activity_options=options, update_mask={"paths": ["start_to_close_timeout"]})
    world.describe()
    operate(world, "UpdateActivityOptions", restore_original=True)
    world.describe()


@scenario
def activity_goes_to_another_queue(world: World) -> None:
    begin(world)
    other = f"{world.queue}-other"
    options = {"task_queue": {"name": other}}
    operate(world, "UpdateActivityOptions", activity_options=options, update_mask={"paths": ["task_queue.name"]})
    world.finish_activity(world.poll_activity(other))
    end(world)


@scenario
def activity_reset_restores_its_options(world: World) -> None:
    begin(world)
    options = {"start_to_close_timeout": seconds(7)}
    operate(world, "UpdateActivityOptions", activity_options=options, update_mask={"paths": ["start_to_close_timeout"]})
    operate(world, "ResetActivity", restore_original_options=True)
    world.describe()


@scenario
def bad_operations_on_activities(world: World) -> None:
    begin(world)
    for rpc in ["PauseActivity", "UnpauseActivity", "ResetActivity", "UpdateActivityOptions"]:
        more = {"activity_options": {}, "update_mask": {"paths": ["priority"]}} if rpc.startswith("Update") else {}
        operate(world, rpc, id="nobody", **more)
        operate(world, rpc, id="", **more)
        operate(world, rpc, execution=world.execution("nobody"), **more)
        operate(world, rpc, execution={"workflow_id": world.id(), "run_id": "not a run"}, **more)
        operate(world, rpc, namespace="nowhere", **more)
        world.attempt(rpc, execution=world.execution(), **more)
        world.attempt(rpc, id="activity", **more)
    operate(world, "UpdateActivityOptions")
    operate(world, "UpdateActivityOptions", activity_options={"heartbeat_timeout": seconds(1)})
    operate(world, "UpdateActivityOptions", restore_original=True, activity_options={"heartbeat_timeout": seconds(1)})
    world.finish_activity(world.poll_activity())
    end(world)
    operate(world, "PauseActivity")
    operate(world, "ResetActivity")


# ---- a workflow's priority -----------------------------------------------------------------------


def give_options(world: World, options: dict, *paths: str, name: str = "workflow", **fields) -> Message:
    fields = {"workflow_execution": world.execution(name), "update_mask": {"paths": paths}} | fields
    return world.attempt("UpdateWorkflowExecutionOptions", workflow_execution_options=options, **fields)


@scenario
def workflow_gets_another_priority(world: World) -> None:
    world.start(priority={"priority_key": 2, "fairness_key": "tenant"})
    give_options(world, {"priority": {"priority_key": 4}}, "priority.priority_key")
    world.describe()
    world.turn(schedule_activity())
    give_options(world, {"priority": {"fairness_key": "other", "fairness_weight": 2}}, "priority")
    world.finish_activity(world.poll_activity())
    give_options(world, {}, "priority")
    # As it is already.
    give_options(world, {}, "priority")
    end(world)


@scenario
def bad_options_of_a_workflow(world: World) -> None:
    world.start()
    give_options(world, {"priority": {"priority_key": 4}})
    give_options(world, {"priority": {"priority_key": 4}}, "nonsense")
    give_options(world, {"priority": {"priority_key": 4}}, "priority", name="nobody")
    give_options(world, {"priority": {"priority_key": 4}}, "priority", namespace="nowhere")
    give_options(world, {"priority": {"priority_key": -1}}, "priority")
    give_options(world, {"priority": {"fairness_key": "x" * 65}}, "priority")
    world.turn(complete_workflow())
    give_options(world, {"priority": {"priority_key": 4}}, "priority")
