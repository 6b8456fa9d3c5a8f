"""The table of endpoints in docs/durable-workflow.md against the SDK and the server's own description."""

import inspect
import os
import re
from pathlib import Path

import httpx
from durable_workflow import Client

URL = os.environ["DURABLE_URL"]
PAGE = Path(__file__).parents[2] / "docs" / "durable-workflow.md"
ROW = re.compile(r"^\| `(\w+) (/api/\S+)` \| (.+) \| (served|not built) \|$")
# Methods that call others and no endpoint of their own.
COMPOSED = {"aclose", "get_activity_handle", "get_activity_result", "get_result", "get_schedule_handle",
            "get_workflow_handle", "iter_schedule_history", "iter_workflow_stream"}


def table() -> list[tuple[str, str, list[str], str]]:
    rows = [ROW.match(line) for line in PAGE.read_text().splitlines()]
    return [(row[1], row[2], re.findall(r"`(\w+)`", row[3]), row[4]) for row in rows if row]


def test_every_method_of_the_client_has_its_endpoint():
    named = {name for row in table() for name in row[2]}
    methods = {name for name, value in vars(Client).items()
               if not name.startswith("_") and inspect.isroutine(value)}
    assert named == methods - COMPOSED


def test_the_server_serves_what_the_table_says():
    api = httpx.get(f"{URL}/api/openapi.json").json()["paths"]
    wrong = []
    for method, path, _, state in table():
        route = api.get(path, {}).get(method.lower())
        built = route is not None and "not built" not in route.get("tags", [])
        if route is None or built != (state == "served"):
            wrong.append((method, path, state))
    assert not wrong
