"""Queries: given alone, given with a task, refused."""

from __future__ import annotations

from payload import complete_workflow, fail_workflow, failure, payload, payloads, seconds
from registry import scenario
from scenarios.workflow_tasks import sticky
from world import World


def query(world: World, name: str = "workflow", timeout_s: float = 30, **fields):
    fields = {"query": {"query_type": "state", "query_args": payloads("arg")}} | fields
    return world.later("QueryWorkflow", timeout_s, execution=world.execution(name), **fields)


def answer_direct(world: World, result: object = "fine") -> None:
    task = world.poll()
    fields = {"completed_type": "QUERY_RESULT_TYPE_ANSWERED", "query_result": payloads(result)}
    world.call("RespondQueryTaskCompleted", task_token=task.task_token, **fields)


@scenario
def query_of_an_idle_workflow(world: World) -> None:
    world.start()
    world.turn()
    asked = query(world, query={"query_type": "state", "header": {"fields": {"trace": payload("t")}}})
    answer_direct(world)
    asked.answer()


@scenario
def query_of_a_closed_workflow(world: World) -> None:
    world.start()
    world.turn(complete_workflow())
    asked = query(world)
    answer_direct(world)
    asked.answer()


@scenario
def query_of_a_sticky_workflow(world: World) -> None:
    world.start()
    world.turn(sticky_attributes=sticky(world))
    polling = world.poll_later(sticky(world)["worker_task_queue"])
    asked = query(world)
    task = polling.answer()
    fields = {"completed_type": "QUERY_RESULT_TYPE_ANSWERED", "query_result": payloads("fine")}
    world.call("RespondQueryTaskCompleted", task_token=task.task_token, **fields)
    asked.answer()


@scenario
def query_fails(world: World) -> None:
    world.start()
    world.turn()
    asked = query(world)
    task = world.poll()
    fields = {"completed_type": "QUERY_RESULT_TYPE_FAILED", "error_message": "no such query", "failure": failure()}
    world.call("RespondQueryTaskCompleted", task_token=task.task_token, **fields)
    asked.answer()
    world.attempt("RespondQueryTaskCompleted", task_token=task.task_token, **fields)


@scenario
def query_with_a_task(world: World) -> None:
    world.start()
    world.turn()
    world.signal("go")
    asked = query(world)
    # It has to be there before the task is taken.
    world.wait_s(1)
    task = world.poll()
    answers = {
        asked_id: {"result_type": "QUERY_RESULT_TYPE_ANSWERED", "answer": payloads("fine")} for asked_id in task.queries
    }
    world.complete(task, query_results=answers)
    asked.answer()


@scenario
def query_with_a_task_fails(world: World) -> None:
    world.start()
    world.turn()
    world.signal("go")
    asked = query(world)
    world.wait_s(1)
    task = world.poll()
    result = {"result_type": "QUERY_RESULT_TYPE_FAILED", "error_message": "no such query", "failure": failure()}
    world.complete(task, query_results={asked_id: result for asked_id in task.queries})
    asked.answer()


@scenario
def query_with_a_task_is_left_open(world: World) -> None:
    world.start()
    world.turn()
    world.signal("go")
    asked = query(world)
    world.wait_s(1)
    world.turn()
    answer_direct(world)
    asked.answer()


@scenario
def query_before_the_first_task(world: World) -> None:
    world.start()
    asked = query(world)
    world.wait_s(1)
    task = world.poll()
    world.complete(task)
    answer_direct(world)
    asked.answer()


@scenario
def query_is_rejected(world: World) -> None:
    world.start("open")
    world.turn()
    world.start("failed")
    world.turn(fail_workflow())
    world.start("completed")
    world.turn(complete_workflow())
    for name in ("failed", "completed"):
        query(world, name, query_reject_condition="QUERY_REJECT_CONDITION_NOT_OPEN").answer()
    query(world, "failed", query_reject_condition="QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY").answer()
    for name, condition in (("completed", "NOT_COMPLETED_CLEANLY"), ("open", "NOT_OPEN")):
        asked = query(world, name, query_reject_condition=f"QUERY_REJECT_CONDITION_{condition}")
        answer_direct(world)
        asked.answer()


@scenario
def query_that_cannot_be_answered(world: World) -> None:
    world.start("closed")
    world.terminate("closed")
    query(world, "closed").answer()
    world.start("late", workflow_start_delay=seconds(600))
    query(world, "late", timeout_s=5).answer()
    world.terminate("late")
    world.start("failing")
    for _ in range(3):
        world.fail_task(world.poll())
    query(world, "failing").answer()


@scenario
def bad_queries(world: World) -> None:
    world.start()
    world.turn()
    other = "11111111-2222-3333-4444-555555555555"
    asked = {"query_type": "state"}
    for fields in (
        {},
        {"execution": {}, "query": asked},
        {"execution": world.execution()},
        {"execution": world.execution(), "query": {}},
        {"execution": world.execution(run_id="not a uuid"), "query": asked},
        {"execution": world.execution(run_id=other), "query": asked},
        {"execution": world.execution("nobody"), "query": asked},
        {"execution": {"workflow_id": "x" * 1001}, "query": asked},
        {"execution": world.execution(), "query": asked | {"query_args": payloads("x" * (2 * 1024 * 1024 + 1))}},
    ):
        world.attempt("QueryWorkflow", **fields)
    world.attempt("RespondQueryTaskCompleted")
    world.attempt("RespondQueryTaskCompleted", task_token=b"garbage")
