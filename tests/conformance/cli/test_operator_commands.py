"""`temporal operator …`: the cluster and its namespaces."""

import uuid

import pytest
from app.message_workflows import FixedGreeting
from support import until
from temporalio.client import Client
from temporalio.worker import Worker

from temporal_cli import attempt, temporal


@pytest.fixture
async def namespace() -> str:
    name = f"conformance-{uuid.uuid4()}"
    words = ["--retention", "72h", "--description", "made by a test"]
    await temporal("operator", "namespace", "create", *words, namespace=name)

    # A namespace may take a moment to be known everywhere.
    async def is_known() -> bool:
        described = await attempt("operator", "namespace", "describe", namespace=name)
        return described.code == 0

    await until(is_known)
    return name


async def test_the_cluster_is_healthy():
    assert (await temporal("operator", "cluster", "health")).json == {
        "status": "SERVING"
    }


async def test_a_created_namespace_can_be_described(namespace: str):
    described = await temporal("operator", "namespace", "describe", namespace=namespace)
    info = described.json["namespaceInfo"]
    assert info["name"] == namespace
    assert info["state"] == "NAMESPACE_STATE_REGISTERED"
    assert info["description"] == "made by a test"
    assert uuid.UUID(info["id"])
    assert described.json["config"]["workflowExecutionRetentionTtl"] == "259200s"


async def test_a_created_namespace_is_listed_beside_the_default_one(namespace: str):
    listed = (await temporal("operator", "namespace", "list")).json
    names = [entry["namespaceInfo"]["name"] for entry in listed]
    assert "default" in names
    assert namespace in names


async def test_a_namespace_cannot_be_created_twice(namespace: str):
    refusal = await attempt("operator", "namespace", "create", namespace=namespace)
    assert refusal.code == 1
    assert "already exists" in refusal.stderr


async def test_an_unknown_namespace_is_refused_by_name():
    name = f"nobody-made-{uuid.uuid4()}"
    refusal = await attempt("operator", "namespace", "describe", namespace=name)
    assert refusal.code == 1
    assert name in refusal.stderr


async def test_a_workflow_runs_in_a_created_namespace(namespace: str, client: Client):
    tenant = await Client.connect(
        client.service_client.config.target_host, namespace=namespace
    )
    words = ["--type", "Greeting", "--task-queue", namespace, "--input", '"Ada"']
    async with Worker(tenant, task_queue=namespace, workflows=[FixedGreeting]):
        outcome = await temporal("workflow", "execute", *words, namespace=namespace)
    assert outcome.json["result"] == "Hello, Ada!"


async def test_a_deleted_namespace_is_gone_with_its_workflows(namespace: str):
    words = ["--type", "Greeting", "--task-queue", namespace, "--workflow-id", "lost"]
    await temporal("workflow", "start", *words, namespace=namespace)
    await temporal("operator", "namespace", "delete", "--yes", namespace=namespace)
    refusal = await attempt("operator", "namespace", "describe", namespace=namespace)
    assert refusal.code == 1
    refusal = await attempt("workflow", "describe", "-w", "lost", namespace=namespace)
    assert refusal.code == 1
    listed = (await temporal("operator", "namespace", "list")).json
    assert namespace not in [entry["namespaceInfo"]["name"] for entry in listed]
