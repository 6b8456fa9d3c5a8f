"""What a server says about itself and its namespaces."""

from __future__ import annotations

from payload import payload
from registry import scenario
from world import World

DAY = {"seconds": 86400}


@scenario
def cluster_about_itself(world: World) -> None:
    world.call("GetSystemInfo")
    world.call("GetClusterInfo")
    world.call("GetSearchAttributes")
    world.call("ListSearchAttributes")


@scenario
def namespace_of_its_own(world: World) -> None:
    name = world.queue
    world.call(
        "RegisterNamespace",
        namespace=name,
        description="a description",
        owner_email="owner@example.com",
        workflow_execution_retention_period=DAY,
        data={"key": "value"},
    )
    world.attempt("RegisterNamespace", namespace=name, workflow_execution_retention_period=DAY)
    described = world.call("DescribeNamespace", namespace=name)
    world.attempt("DescribeNamespace", namespace="", id=described.namespace_info.id)
    world.call(
        "UpdateNamespace",
        namespace=name,
        update_info={"description": "another", "owner_email": "", "data": {"more": "1"}},
        config={"workflow_execution_retention_ttl": {"seconds": 2 * 86400}},
    )
    world.call("DescribeNamespace", namespace=name)
    world.attempt("UpdateNamespace", namespace=name, config={"workflow_execution_retention_ttl": {"seconds": 60}})
    world.attempt("UpdateNamespace", namespace=name, update_info={"state": "NAMESPACE_STATE_DEPRECATED"})
    world.attempt("UpdateNamespace", namespace=name)
    world.call("DeprecateNamespace", namespace=name)
    world.call("DescribeNamespace", namespace=name)


@scenario
def bad_namespaces(world: World) -> None:
    for fields in (
        {"namespace": "", "workflow_execution_retention_period": DAY},
        {"namespace": "no-retention"},
        {"namespace": "short", "workflow_execution_retention_period": {"seconds": 60}},
        {"namespace": "negative", "workflow_execution_retention_period": {"seconds": -60}},
        {"namespace": "x" * 1001, "workflow_execution_retention_period": DAY},
        {"namespace": "temporal-system", "workflow_execution_retention_period": DAY},
        {"namespace": "global", "workflow_execution_retention_period": DAY, "is_global_namespace": True},
    ):
        world.attempt("RegisterNamespace", **fields)
    world.attempt("DescribeNamespace", namespace="", id="11111111-2222-3333-4444-555555555555")
    world.attempt("DescribeNamespace", namespace="nobody")
    world.attempt("UpdateNamespace", namespace="nobody")


@scenario
def namespace_names_of_every_kind(world: World) -> None:
    for number, name in enumerate(("with space", "UPPER", "ünïcödé", "under_score", "dot.ted", "/slash")):
        world.attempt("RegisterNamespace", namespace=f"{name}-{number}", workflow_execution_retention_period=DAY)


@scenario
def namespace_is_deleted(world: World) -> None:
    name = world.queue
    for fields in (
        {"namespace": ""},
        {"namespace": "nobody"},
        {"namespace": "", "namespace_id": "11111111-2222-3333-4444-555555555555"},
        {"namespace": name, "namespace_id": "11111111-2222-3333-4444-555555555555"},
        {"namespace": "temporal-system"},
    ):
        world.attempt("DeleteNamespace", **fields)
    world.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=DAY)
    world.wait_until_known(name)
    world.call("DeleteNamespace", namespace=name)
    world.attempt("DescribeNamespace", namespace=name)
    # The name is free.
    world.attempt("RegisterNamespace", namespace=name, workflow_execution_retention_period=DAY)


@scenario
def metadata_of_a_start(world: World) -> None:
    world.start(user_metadata={"summary": payload("s"), "details": payload("d")})
    world.describe()
    world.terminate()
