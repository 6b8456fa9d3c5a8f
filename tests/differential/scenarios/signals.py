"""Signals, alone and with a start."""

from __future__ import annotations

from payload import complete_workflow, fail_workflow, payload, payloads, seconds
from registry import scenario
from world import World

CONFLICT = "WORKFLOW_ID_CONFLICT_POLICY_"
REUSE = "WORKFLOW_ID_REUSE_POLICY_"


def signal_with_start(world: World, name: str = "workflow", signal: str = "hello", **fields):
    fields = world.start_fields(name) | {"signal_name": signal, "signal_input": payloads(signal)} | fields
    return world.attempt("SignalWithStartWorkflowExecution", **fields)


@scenario
def signal_with_every_field(world: World) -> None:
    world.start()
    world.signal(
        "full",
        control="control",
        header={"fields": {"trace": payload("t")}},
        links=[{"workflow_event": {"namespace": "n", "workflow_id": "w", "run_id": "r"}}],
        identity="somebody",
    )
    world.signal("bare", request_id="", input=None, identity="")
    world.turn(complete_workflow())


@scenario
def signal_is_sent_twice(world: World) -> None:
    world.start()
    world.signal("one")
    world.signal("one")
    world.signal("one", request_id="another")
    world.turn(complete_workflow())
    # The run is closed, and knows this request all the same.
    fields = {"workflow_execution": world.execution(), "signal_name": "one", "request_id": "signal-one"}
    world.attempt("SignalWorkflowExecution", **fields)


@scenario
def bad_signals(world: World) -> None:
    run_id = world.start()
    other = "11111111-2222-3333-4444-555555555555"
    large = payloads("x" * (2 * 1024 * 1024 + 1))
    for fields in (
        {},
        {"workflow_execution": {}},
        {"workflow_execution": {"workflow_id": "x" * 1001}},
        {"workflow_execution": world.execution()},
        {"workflow_execution": world.execution(), "signal_name": "x" * 1001},
        {"workflow_execution": world.execution(), "signal_name": "s", "request_id": "x" * 1001},
        {"workflow_execution": world.execution(), "signal_name": "s", "input": large},
        {"workflow_execution": world.execution(run_id="not a uuid"), "signal_name": "s"},
        {"workflow_execution": world.execution(run_id=other), "signal_name": "s"},
        {"workflow_execution": world.execution("nobody"), "signal_name": "s"},
        {"workflow_execution": world.execution("nobody", run_id=other), "signal_name": "s"},
        {"workflow_execution": world.execution("nobody", run_id=run_id), "signal_name": "s"},
    ):
        world.attempt("SignalWorkflowExecution", **fields)
    world.terminate()


@scenario
def signal_starts_a_workflow(world: World) -> None:
    signal_with_start(world, header={"fields": {"trace": payload("t")}}, control="control")
    world.turn(complete_workflow())


@scenario
def signal_with_start_finds_a_run(world: World) -> None:
    world.start()
    signal_with_start(world, request_id="one")
    signal_with_start(world, request_id="one")
    signal_with_start(world, request_id="two", workflow_id_conflict_policy=f"{CONFLICT}USE_EXISTING")
    signal_with_start(world, request_id="three", workflow_id_conflict_policy=f"{CONFLICT}FAIL")
    signal_with_start(world, request_id="four", workflow_id_reuse_policy=f"{REUSE}REJECT_DUPLICATE")
    world.turn(complete_workflow())


@scenario
def signal_with_start_terminates_a_run(world: World) -> None:
    world.start()
    signal_with_start(world, request_id="one", workflow_id_conflict_policy=f"{CONFLICT}TERMINATE_EXISTING")
    signal_with_start(world, request_id="two", workflow_id_reuse_policy=f"{REUSE}TERMINATE_IF_RUNNING")
    world.turn(complete_workflow())


@scenario
def signal_with_start_after_the_end(world: World) -> None:
    for name, closing in {"completed": complete_workflow(), "failed": fail_workflow()}.items():
        world.start(name)
        world.turn(closing)
        for policy in ("REJECT_DUPLICATE", "ALLOW_DUPLICATE_FAILED_ONLY", "ALLOW_DUPLICATE"):
            signal_with_start(world, name, request_id=policy, workflow_id_reuse_policy=f"{REUSE}{policy}")
        world.terminate(name)


@scenario
def signal_with_start_is_sent_twice(world: World) -> None:
    signal_with_start(world)
    signal_with_start(world)
    world.turn(complete_workflow())
    signal_with_start(world)


@scenario
def signal_with_start_that_waits(world: World) -> None:
    signal_with_start(world, "delay", workflow_start_delay=seconds(600))
    signal_with_start(world, "cron", cron_schedule="0 0 1 1 *")
    world.describe("delay")
    world.describe("cron")
    world.terminate("delay")
    world.terminate("cron")
