"""Completion callbacks, and what a start leaves with a workflow that runs already."""

from __future__ import annotations

from payload import cancel_workflow, complete_workflow, continue_as_new, fail_workflow, seconds
from registry import scenario
from world import World

USE_EXISTING = "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"
STANDBY, SUCCEEDED, FAILED, BACKING_OFF = 1, 5, 4, 3


def callback(world: World, path: str = "/ear", **header: str) -> dict:
    return {"nexus": {"url": f"http://{world.receiver()}{path}", "header": header}}


@scenario
def callback_after_the_end(world: World) -> None:
    for name, closing in {
        "completed": complete_workflow(),
        "failed": fail_workflow(),
        "cancelled": cancel_workflow(),
    }.items():
        world.start(name, completion_callbacks=[callback(world, f"/{name}", Token="T", Other="o")])
        world.describe(name)
        world.turn(closing)
        world.hear()
        world.wait_for_callback("SUCCEEDED", name)
    world.start("terminated", completion_callbacks=[callback(world, "/terminated")])
    world.terminate("terminated", reason="nobody's business")
    world.hear()
    world.wait_for_callback("SUCCEEDED", "terminated")


@scenario
def callback_of_a_workflow_that_times_out(world: World) -> None:
    world.start(completion_callbacks=[callback(world)], workflow_run_timeout=seconds(1))
    world.hear()
    world.wait_for_callback("SUCCEEDED")


@scenario
def callback_goes_on_with_the_workflow(world: World) -> None:
    world.start(completion_callbacks=[callback(world)])
    world.turn(continue_as_new())
    world.turn(complete_workflow())
    world.hear()
    world.wait_for_callback("SUCCEEDED")


@scenario
def callback_of_a_workflow_that_is_retried(world: World) -> None:
    retry = {"initial_interval": seconds(1), "maximum_attempts": 2}
    world.start(completion_callbacks=[callback(world)], retry_policy=retry)
    world.turn(fail_workflow())
    world.turn(fail_workflow())
    world.hear()
    world.wait_for_callback("SUCCEEDED")


@scenario
def callback_is_refused(world: World) -> None:
    world.receiver(iter([404]))
    world.start(completion_callbacks=[callback(world)])
    world.terminate()
    world.hear()
    world.wait_for_callback("FAILED")


@scenario
def callback_is_made_again(world: World) -> None:
    world.receiver(iter([503, 500]))
    world.start(completion_callbacks=[callback(world)])
    world.terminate()
    for _ in range(3):
        world.hear()
    world.wait_for_callback("SUCCEEDED")


@scenario
def callback_of_a_workflow_that_is_reset(world: World) -> None:
    run_id = world.start(completion_callbacks=[callback(world)])
    world.turn()
    world.signal("go-on")
    world.turn()
    fields = {"reason": "again", "workflow_task_finish_event_id": 4, "request_id": "reset"}
    world.call("ResetWorkflowExecution", workflow_execution=world.execution(run_id=run_id), **fields)
    world.turn(complete_workflow())
    world.hear()
    world.wait_for_callback("SUCCEEDED")


@scenario
def callback_is_attached(world: World) -> None:
    world.start()
    fields = world.start_fields(request_id="later", workflow_id_conflict_policy=USE_EXISTING)
    link = {"workflow_event": {"namespace": "n", "workflow_id": "w", "run_id": "r"}}
    everything = {"attach_request_id": True, "attach_completion_callbacks": True, "attach_links": True}
    later = {"completion_callbacks": [callback(world)], "links": [link], "on_conflict_options": everything}
    world.call("StartWorkflowExecution", **fields, **later)
    world.call("StartWorkflowExecution", **fields, **later)
    world.describe()
    world.turn(complete_workflow())
    world.hear()
    world.wait_for_callback("SUCCEEDED")
    world.attempt("StartWorkflowExecution", **fields, **later)


@scenario
def callback_is_attached_while_a_task_is_under_way(world: World) -> None:
    world.start()
    task = world.poll()
    fields = world.start_fields(request_id="later", workflow_id_conflict_policy=USE_EXISTING)
    options = {"attach_request_id": True}
    world.call("StartWorkflowExecution", **fields, on_conflict_options=options)
    world.describe()
    world.complete(task)
    world.describe()
    world.terminate()


@scenario
def attaching_nothing(world: World) -> None:
    world.start()
    fields = world.start_fields(request_id="later", workflow_id_conflict_policy=USE_EXISTING)
    world.call("StartWorkflowExecution", **fields, on_conflict_options={})
    world.call("StartWorkflowExecution", **fields)
    world.terminate()


@scenario
def bad_callbacks(world: World) -> None:
    for number, urls in enumerate((
        [""], ["x"], ["ftp://127.0.0.1:1/"], ["http://"], ["http:///x"], ["http://127.0.0.2:1/"],
        ["http://127.0.0.1:1/" + "x" * 1000],
    )):
        nexus = [{"nexus": {"url": url}} for url in urls]
        world.attempt("StartWorkflowExecution", **world.start_fields(f"url-{number}", completion_callbacks=nexus))
    long_header = {"nexus": {"url": "http://127.0.0.1:1/", "header": {"h": "x" * 9000}}}
    world.attempt("StartWorkflowExecution", **world.start_fields("header", completion_callbacks=[long_header]))
    many = [{"nexus": {"url": "http://127.0.0.1:1/"}}] * 2001
    world.attempt("StartWorkflowExecution", **world.start_fields("many", completion_callbacks=many))
    options = {"attach_completion_callbacks": True}
    world.attempt("StartWorkflowExecution", **world.start_fields("options", on_conflict_options=options))
