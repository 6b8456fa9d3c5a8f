"""Deletion of workflows: closed, running, unknown."""

from __future__ import annotations

from payload import complete_workflow, continue_as_new
from registry import scenario_of
from world import World

scenario = scenario_of("DeleteWorkflowExecution")


def delete(world: World, name: str = "workflow", run_id: str = "") -> None:
    world.attempt("DeleteWorkflowExecution", workflow_execution=world.execution(name, run_id))


@scenario
def deletion_of_a_closed_workflow(world: World) -> None:
    world.start()
    world.turn(complete_workflow())
    delete(world)
    world.wait_until_gone()
    delete(world)
    world.attempt("SignalWorkflowExecution", workflow_execution=world.execution(), signal_name="s")
    world.attempt("ResetWorkflowExecution", workflow_execution=world.execution(), workflow_task_finish_event_id=4, request_id="r")
    # Its id is free, as if it had never been used.
    reject = {"workflow_id_reuse_policy": "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE"}
    world.call("StartWorkflowExecution", **world.start_fields(request_id="again", **reject))
    world.turn(complete_workflow())


@scenario
def deletion_of_a_running_workflow(world: World) -> None:
    world.start()
    world.turn()
    delete(world)
    world.wait_until_gone()
    world.attempt("DescribeWorkflowExecution", execution=world.execution())


@scenario
def deletion_while_a_task_is_out(world: World) -> None:
    world.start()
    task = world.poll()
    delete(world)
    world.wait_until_gone()
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, complete_workflow()))


@scenario
def deletion_of_one_run_of_a_chain(world: World) -> None:
    first = world.start()
    world.turn(continue_as_new())
    world.turn()
    delete(world, run_id=first)
    world.wait_until_gone(run_id=first)
    world.describe()
    world.signal("end")
    world.turn(complete_workflow())


@scenario
def bad_deletions(world: World) -> None:
    world.start()
    delete(world, "nobody")
    delete(world, run_id="11111111-2222-3333-4444-555555555555")
    delete(world, run_id="not a run")
    method = "DeleteWorkflowExecution"
    world.attempt(method)
    world.attempt(method, workflow_execution={"run_id": "11111111-2222-3333-4444-555555555555"})
    world.attempt(method, workflow_execution=world.execution(), namespace="nowhere")
    world.turn(complete_workflow())
