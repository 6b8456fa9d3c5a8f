"""Runs that follow one another: continued as new, retried, on a schedule; and runs that begin late."""

from __future__ import annotations

from payload import (
    complete_workflow,
    continue_as_new,
    fail_workflow,
    failure,
    payload,
    payloads,
    seconds,
    start_child,
    start_timer,
)
from registry import scenario
from world import World

RETRY = {"initial_interval": seconds(1), "backoff_coefficient": 1}


@scenario
def workflow_continues_as_new(world: World) -> None:
    first = world.start(
        memo={"fields": {"m": payload(1)}},
        header={"fields": {"trace": payload("t")}},
        workflow_execution_timeout=seconds(100),
        workflow_run_timeout=seconds(50),
        search_attributes={"indexed_fields": {"TemporalChangeVersion": payload(["a"])}},
        user_metadata={"summary": payload("sum")},
    )
    world.turn(continue_as_new())
    world.describe()
    world.turn(complete_workflow())
    world.attempt("SignalWorkflowExecution", workflow_execution=world.execution(run_id=first), signal_name="late")
    world.attempt("RequestCancelWorkflowExecution", workflow_execution=world.execution(run_id=first))


@scenario
def workflow_continues_as_something_else(world: World) -> None:
    world.start()
    other = f"{world.queue}-other"
    world.turn(
        continue_as_new(
            workflow_type={"name": "Other"},
            task_queue={"name": other},
            workflow_run_timeout=seconds(30),
            workflow_task_timeout=seconds(50),
            backoff_start_interval=seconds(2),
            memo={"fields": {"m": payload(1)}},
            header={"fields": {"trace": payload("t")}},
            search_attributes={"indexed_fields": {"TemporalChangeVersion": payload(["a"])}},
            retry_policy=RETRY,
            last_completion_result=payloads("last"),
            failure=failure("last"),
        )
    )
    world.turn(complete_workflow(), queue=other)


@scenario
def workflow_continues_with_little_said(world: World) -> None:
    world.start(workflow_run_timeout=seconds(50), workflow_task_timeout=seconds(7))
    world.turn(continue_as_new(workflow_type=None, task_queue={}, input=None))
    world.turn(complete_workflow())


@scenario
def workflow_continues_twice(world: World) -> None:
    world.start()
    world.turn(continue_as_new())
    world.turn(continue_as_new())
    world.turn(complete_workflow())


@scenario
def workflow_continues_after_a_while(world: World) -> None:
    world.start()
    world.turn(start_timer(after_s=2))
    world.turn(continue_as_new())
    world.turn(complete_workflow())


@scenario
def workflow_is_retried(world: World) -> None:
    more = {"memo": {"fields": {"m": payload(1)}}, "user_metadata": {"summary": payload("sum")}}
    world.start(retry_policy=RETRY | {"maximum_attempts": 3}, **more)
    world.turn(fail_workflow())
    world.describe()
    world.turn(complete_workflow())


@scenario
def workflow_uses_up_its_attempts(world: World) -> None:
    world.start(retry_policy=RETRY | {"maximum_attempts": 2})
    world.turn(fail_workflow())
    world.turn(fail_workflow())


@scenario
def workflow_may_not_be_retried(world: World) -> None:
    world.start("flag", retry_policy=RETRY)
    world.turn(fail_workflow(non_retryable=True))
    world.start("type", retry_policy=RETRY | {"non_retryable_error_types": ["Fatal"]})
    world.turn(fail_workflow(kind="Fatal"))
    world.start("none")
    world.turn(fail_workflow())
    world.start("time", retry_policy=RETRY | {"initial_interval": seconds(100)}, workflow_execution_timeout=seconds(50))
    world.turn(fail_workflow())


@scenario
def workflow_retry_policy_is_filled_in(world: World) -> None:
    world.start(retry_policy={"maximum_attempts": 3})
    world.turn(complete_workflow())


@scenario
def workflow_is_retried_after_its_timeout(world: World) -> None:
    first = world.start(retry_policy=RETRY | {"maximum_attempts": 2}, workflow_run_timeout=seconds(4))
    world.wait_for("WORKFLOW_EXECUTION_TIMED_OUT", run_id=first)
    world.turn(complete_workflow())


@scenario
def workflow_with_a_retry_policy_runs_out_of_time(world: World) -> None:
    world.start(retry_policy=RETRY, workflow_execution_timeout=seconds(2))
    world.wait_for("WORKFLOW_EXECUTION_TIMED_OUT")


@scenario
def workflow_chooses_when_it_is_retried(world: World) -> None:
    world.start(retry_policy=RETRY | {"initial_interval": seconds(60)})
    world.turn(fail_workflow(next_retry_delay=seconds(2)))
    world.turn(complete_workflow())


@scenario
def cron(world: World) -> None:
    world.start(cron_schedule="@every 1s", memo={"fields": {"m": payload(1)}})
    world.turn(complete_workflow("first"))
    world.turn(fail_workflow())
    world.turn(complete_workflow("third"))
    world.terminate()


@scenario
def cron_with_retries(world: World) -> None:
    world.start(cron_schedule="@every 1s", retry_policy=RETRY | {"maximum_attempts": 2})
    world.turn(fail_workflow())
    world.turn(fail_workflow())
    world.turn(complete_workflow())
    world.terminate()


@scenario
def cron_continues_as_new(world: World) -> None:
    world.start(cron_schedule="@every 1s")
    world.turn(continue_as_new(cron_schedule="@every 1s"))
    world.turn(complete_workflow())
    world.turn(continue_as_new())
    world.turn(complete_workflow())


@scenario
def cron_times_out(world: World) -> None:
    first = world.start(cron_schedule="@every 1s", workflow_run_timeout=seconds(4))
    world.wait_for("WORKFLOW_EXECUTION_TIMED_OUT", run_id=first)
    world.turn(complete_workflow())
    world.terminate()


@scenario
def cron_before_its_first_run(world: World) -> None:
    world.start(cron_schedule="0 0 1 1 *")
    world.signal("early")
    world.describe()
    world.terminate()


@scenario
def start_is_delayed(world: World) -> None:
    world.start(workflow_start_delay=seconds(2), workflow_run_timeout=seconds(30))
    world.describe()
    world.turn(complete_workflow())


@scenario
def start_is_delayed_and_a_signal_comes(world: World) -> None:
    world.start(workflow_start_delay=seconds(3))
    world.signal("early")
    world.describe()
    world.turn(complete_workflow())


@scenario
def start_is_delayed_and_a_signal_with_start_comes(world: World) -> None:
    world.start(workflow_start_delay=seconds(600))
    fields = world.start_fields(request_id="another")
    world.call("SignalWithStartWorkflowExecution", signal_name="now", **fields)
    world.turn(complete_workflow())


@scenario
def start_is_delayed_and_a_cancel_comes(world: World) -> None:
    world.start(workflow_start_delay=seconds(600))
    world.request_cancel()
    world.turn(complete_workflow())


@scenario
def chain_and_its_children(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child")))
    world.turn(continue_as_new())
    world.wait_for("WORKFLOW_EXECUTION_TERMINATED", "child")
    world.turn(complete_workflow())
