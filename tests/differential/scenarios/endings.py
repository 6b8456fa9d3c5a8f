"""How workflows end: by themselves, by others and by the clock."""

from __future__ import annotations

from payload import cancel_workflow, command, complete_workflow, fail_workflow, payloads, schedule_activity, seconds
from registry import scenario
from world import World


@scenario
def workflow_completes(world: World) -> None:
    world.start()
    world.turn(complete_workflow())


@scenario
def workflow_completes_with_nothing(world: World) -> None:
    world.start()
    world.turn(command("COMPLETE_WORKFLOW_EXECUTION"))


@scenario
def workflow_fails(world: World) -> None:
    world.start()
    world.turn(fail_workflow())


@scenario
def workflow_is_cancelled(world: World) -> None:
    world.start()
    world.turn()
    world.request_cancel()
    world.describe()
    world.request_cancel(request_id="again")
    world.turn(cancel_workflow())
    world.attempt("RequestCancelWorkflowExecution", workflow_execution=world.execution())


@scenario
def workflow_cancels_itself(world: World) -> None:
    world.start()
    world.turn(cancel_workflow())


@scenario
def workflow_completes_although_cancelled(world: World) -> None:
    world.start()
    world.request_cancel()
    world.turn(complete_workflow())


@scenario
def workflow_is_terminated(world: World) -> None:
    world.start()
    world.terminate(reason="enough", details=payloads("d"))
    world.attempt("TerminateWorkflowExecution", workflow_execution=world.execution())
    world.attempt("SignalWorkflowExecution", workflow_execution=world.execution(), signal_name="late")


@scenario
def workflow_is_terminated_without_a_word(world: World) -> None:
    world.start()
    world.turn(schedule_activity())
    world.terminate(identity="")


@scenario
def workflow_is_terminated_while_its_task_runs(world: World) -> None:
    world.start()
    task = world.poll()
    world.terminate(reason="enough")
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, complete_workflow()))
    world.attempt("RespondWorkflowTaskFailed", task_token=task.task_token)


@scenario
def workflow_is_terminated_with_events_in_the_buffer(world: World) -> None:
    world.start()
    world.poll()
    world.signal("one")
    world.request_cancel()
    world.terminate(reason="enough")


@scenario
def workflow_run_times_out(world: World) -> None:
    world.start(workflow_run_timeout=seconds(1))
    world.describe()
    world.wait_for("WORKFLOW_EXECUTION_TIMED_OUT")


@scenario
def workflow_execution_times_out(world: World) -> None:
    world.start(workflow_execution_timeout=seconds(1))
    world.describe()
    world.wait_for("WORKFLOW_EXECUTION_TIMED_OUT")


@scenario
def workflow_times_out_while_its_task_runs(world: World) -> None:
    world.start(workflow_run_timeout=seconds(3))
    task = world.poll()
    world.signal("one")
    world.wait_for("WORKFLOW_EXECUTION_TIMED_OUT")
    world.attempt("RespondWorkflowTaskCompleted", **world.completion(task, complete_workflow()))


@scenario
def workflow_timeouts_are_filled_in(world: World) -> None:
    world.start("both", workflow_run_timeout=seconds(50), workflow_execution_timeout=seconds(40))
    world.start("run", workflow_run_timeout=seconds(5), workflow_task_timeout=seconds(20))
    world.start("task", workflow_task_timeout=seconds(500))
    world.start("none", workflow_task_timeout=None)
    for name in ("both", "run", "task", "none"):
        world.describe(name)
        world.terminate(name)


@scenario
def cancel_of_another_chain(world: World) -> None:
    run_id = world.start()
    other = "11111111-2222-3333-4444-555555555555"
    for rpc in ("RequestCancelWorkflowExecution", "TerminateWorkflowExecution"):
        world.attempt(rpc, workflow_execution=world.execution(), first_execution_run_id=other)
        world.attempt(rpc, workflow_execution=world.execution(run_id=other))
        world.attempt(rpc, workflow_execution=world.execution(run_id="not a uuid"))
        world.attempt(rpc, workflow_execution=world.execution(run_id=run_id), first_execution_run_id=run_id)
