"""What the SDK hides: headers, pages, receipts, refusals."""

import os
import uuid

import httpx
import pytest

URL = os.environ["DURABLE_URL"]
EMPTY_LIST = {"codec": "avro", "blob": "wwHioz3/VYAiNwwA"}
DONE = {"codec": "avro", "blob": "wwHioz3/VYAiNwoEaGk="}


@pytest.fixture
def control():
    headers = {"X-Durable-Workflow-Control-Plane-Version": "2", "X-Namespace": "default"}
    with httpx.Client(base_url=f"{URL}/api", headers=headers, timeout=30) as client:
        yield client


@pytest.fixture
def worker():
    headers = {"X-Durable-Workflow-Protocol-Version": "1.20", "X-Namespace": "default"}
    with httpx.Client(base_url=f"{URL}/api/worker", headers=headers, timeout=30) as client:
        client.queue = f"queue-{uuid.uuid4().hex}"
        answer = client.post("/register", json={"worker_id": client.queue, "task_queue": client.queue, "runtime": "x"})
        assert answer.status_code == 201
        yield client


def start(control, worker, **more):
    answer = control.post("/workflows", json={
        "workflow_id": f"wire-{uuid.uuid4().hex}", "workflow_type": "wire", "task_queue": worker.queue,
        "input": EMPTY_LIST, **more})
    assert answer.status_code == 201
    return answer.json()


def poll(worker, kind="workflow", **more):
    answer = worker.post(f"/{kind}-tasks/poll", json={
        "worker_id": worker.queue, "task_queue": worker.queue, "timeout_seconds": 2, **more})
    assert answer.status_code == 200
    return answer.json()["task"]


def complete(worker, task, *commands):
    return worker.post(f"/workflow-tasks/{task['task_id']}/complete", json={
        "lease_owner": worker.queue, "workflow_task_attempt": task["workflow_task_attempt"], "commands": list(commands)})


def test_every_answer_says_which_version_it_is_of(control, worker):
    answer = control.get("/workflows/nobody")
    assert answer.status_code == 404
    assert answer.headers["X-Durable-Workflow-Control-Plane-Version"] == "2"
    assert answer.json()["control_plane"]["operation"] == "describe"
    answer = worker.post("/heartbeat", json={"worker_id": "nobody"})
    assert answer.headers["X-Durable-Workflow-Protocol-Version"] == answer.json()["protocol_version"] == "1.20"


def test_a_poll_without_a_task_is_empty(worker):
    answer = worker.post("/workflow-tasks/poll", json={
        "worker_id": worker.queue, "task_queue": worker.queue, "timeout_seconds": 1})
    assert (answer.json()["task"], answer.json()["poll_status"]) == (None, "empty")


def test_a_repeated_poll_gets_the_same_task(control, worker):
    start(control, worker)
    first = poll(worker, poll_request_id="once")
    assert poll(worker, poll_request_id="once") == first
    assert complete(worker, first, {"type": "complete_workflow", "result": DONE}).status_code == 200


def test_a_history_in_pages_of_three(control, worker):
    run = start(control, worker)
    task = poll(worker)
    complete(worker, task, {"type": "open_condition_wait", "condition_key": "k"})
    for i in range(10):
        control.post(f"/workflows/{run['workflow_id']}/signal/s{i}", json={"request_id": str(i)})
    task = poll(worker, history_page_size=3)
    events = task["history_events"]
    token = task["next_history_page_token"]
    while token:
        page = worker.post(f"/workflow-tasks/{task['task_id']}/history", json={
            "lease_owner": worker.queue, "workflow_task_attempt": task["workflow_task_attempt"],
            "next_history_page_token": token, "history_page_size": 3}).json()
        assert 0 < len(page["history_events"]) <= 3
        events += page["history_events"]
        token = page["next_history_page_token"]
    assert [event["sequence"] for event in events] == list(range(1, 14))


def test_a_lease_of_another_is_refused(control, worker):
    start(control, worker)
    task = poll(worker)
    answer = worker.post(f"/workflow-tasks/{task['task_id']}/complete", json={
        "lease_owner": "thief", "workflow_task_attempt": 1,
        "commands": [{"type": "complete_workflow", "result": DONE}]})
    assert (answer.status_code, answer.json()["reason"]) == (409, "lease_owner_mismatch")
    assert complete(worker, task, {"type": "complete_workflow", "result": DONE}).status_code == 200
    assert complete(worker, task, {"type": "complete_workflow", "result": DONE}).json()["reason"] == "run_closed"


def test_plain_json_becomes_a_payload(control, worker):
    run = start(control, worker, input=[1, "a", None])
    assert poll(worker)["arguments"] == {"codec": "avro", "blob": "wwHioz3/VYAiNwwGBAIKAmEAAA=="}
    about = control.get(f"/workflows/{run['workflow_id']}").json()
    assert about["status"] == "pending"


def test_a_queue_tells_what_it_admits(control, worker):
    start(control, worker)
    shown = control.get(f"/task-queues/{worker.queue}").json()
    assert (shown["name"], shown["namespace"]) == (worker.queue, "default")
    assert [poller["worker_id"] for poller in shown["pollers"]] == [worker.queue]
    tasks = shown["admission"]["workflow_tasks"]
    assert (tasks["status"], tasks["ready_count"], tasks["leased_count"]) == ("accepting", 1, 0)
    assert tasks["configured_slot_count"] == 100
    task = poll(worker)
    tasks = control.get(f"/task-queues/{worker.queue}").json()["admission"]["workflow_tasks"]
    assert (tasks["ready_count"], tasks["leased_count"]) == (0, 1)
    complete(worker, task, {"type": "complete_workflow", "result": DONE})
    queues = {queue["name"]: queue for queue in control.get("/task-queues").json()["task_queues"]}
    assert queues[worker.queue]["admission"]["workflow_tasks"]["leased_count"] == 0
    unknown = control.get("/task-queues/nobody-uses-it").json()
    assert unknown["pollers"] == []
    assert unknown["admission"]["activity_tasks"]["status"] == "no_active_workers"


def test_what_is_not_built_says_so(control):
    for path in ("/external-payloads/v1/one", "/workflows/any/runs/one/streams"):
        answer = control.get(path)
        assert (answer.status_code, answer.json()["reason"]) == (501, "not_implemented")
    assert control.get("/nonsense").json()["reason"] == "not_found"


def test_three_tenants_are_served_five_to_three_to_two(control, worker):
    weights = {"a": 5, "b": 3, "c": 2}
    for key, weight in weights.items():
        for _ in range(20):
            start(control, worker, memo={"tenant": key},
                  priority={"fairness_key": key, "fairness_weight": weight})
    served = dict.fromkeys(weights, 0)
    for dispatched in range(1, 31):
        task = poll(worker)
        about = control.get(f"/workflows/{task['workflow_id']}").json()
        assert about["priority"]["fairness_weight"] == weights[about["memo"]["tenant"]]
        served[about["priority"]["fairness_key"]] += 1
        for key, weight in weights.items():
            assert abs(10 * served[key] - weight * dispatched) <= 10, (key, dispatched)
    assert served == {"a": 15, "b": 9, "c": 6}


def test_workflows_are_listed_newest_first(control, worker):
    mark = f"list-{worker.queue}"
    ids = [start(control, worker, business_key=mark)["workflow_id"] for _ in range(5)]
    task = poll(worker)
    complete(worker, task, {"type": "complete_workflow", "result": DONE})
    seen, token = [], None
    while True:
        page = control.get("/workflows", params={"query": mark, "page_size": 2, "next_page_token": token or ""}).json()
        seen += [run["workflow_id"] for run in page["workflows"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert sorted(seen) == sorted(ids)
    done = control.get("/workflows", params={"query": mark, "status": "completed"}).json()["workflows"]
    assert [run["workflow_id"] for run in done] == [task["workflow_id"]]
    assert control.get("/workflows", params={"status": "waiting"}).status_code == 422


def test_a_queue_tells_who_holds_what(control, worker):
    start(control, worker)
    task = poll(worker)
    leases = control.get(f"/task-queues/{worker.queue}").json()["current_leases"]
    assert [(lease["task_id"], lease["lease_owner"]) for lease in leases] == [(task["task_id"], worker.queue)]
    complete(worker, task, {"type": "complete_workflow", "result": DONE})
    assert control.get(f"/task-queues/{worker.queue}").json()["current_leases"] == []
