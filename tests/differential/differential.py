"""Plays every scenario against Temporal and against Fairlead, and reports where they answer differently.

    tests/differential/run                      everything
    tests/differential/run 'timer*' --all       some scenarios, with the differences that are explained
    tests/differential/run timer_fires --show   what Temporal answered
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import grpc
import self_test
from compare import Difference, Explained, differences, read_explained, unexplained
from scenarios import SCENARIOS, Scenario
from world import NAMESPACE, Refusal, World

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import servers  # noqa: E402  its folder has to be named first

# Scenarios mostly wait. With more at once, calls on two busy cores would begin to miss the workflows' own timeouts.
AT_ONCE = 16
READY_S = 60
SETTINGS = {
    # As Fairlead's queues have.
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
    "history.enableStandaloneActivityOperatorCommands": True,
    "callback.allowedAddresses": [{"Pattern": "127.0.0.1:*", "AllowInsecure": True}],
}
OUR_SETTINGS = '[callbacks]\nallowed_addresses = "http://127.0.0.1:*"\n'


class Temporal(servers.TemporalServer):
    """Temporal's server with a database in memory: nobody will need it."""

    def config(self, port: int, folder: str) -> dict:
        config = super().config(port, folder)
        memory = {"mode": "memory", "cache": "shared", "setup": True}
        config["persistence"]["datastores"]["main"]["sql"]["connectAttributes"] = memory
        return config


class Running(servers.Running):
    """A server with the scenarios' namespace, ready to start workflows in it."""

    settle_s = 0

    def __enter__(self) -> Running:
        super().__enter__()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        retention = {"seconds": 86400}
        self._until_it_works("RegisterNamespace", workflow_execution_retention_period=retention)
        # Temporal looks for new namespaces every few seconds only.
        start = World("ready", self.channel).start_fields()
        self._until_it_works("StartWorkflowExecution", **start)
        return self

    def epitaph(self) -> list[str]:
        """How it ended, if it did: nothing that follows would say more."""
        if self.process.poll() is None:
            return []
        print(Path(self.folder, "log").read_text(errors="replace")[-4000:], file=sys.stderr)
        return [f"{self.server.name} ended with code {self.process.returncode}; the end of its log is on stderr"]

    def _until_it_works(self, rpc: str, **fields) -> None:
        deadline = time.monotonic() + READY_S
        while isinstance(answer := World("ready", self.channel).attempt(rpc, **fields), Refusal):
            if answer.code == "ALREADY_EXISTS":
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.server.name} is not ready: {rpc}: {answer}")
            time.sleep(0.2)


@contextlib.contextmanager
def running(temporal: str, fairlead: str) -> Iterator[list[Running]]:
    with contextlib.ExitStack() as stack:
        both = [Running(Temporal(temporal, settings=SETTINGS)), Running(servers.Fairlead(fairlead, settings=OUR_SETTINGS))]
        for server in both:
            stack.callback(server.__exit__)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Running.__enter__, both))
        yield both


@contextlib.contextmanager
def players() -> Iterator[ThreadPoolExecutor]:
    """Threads that play scenarios. When the run is broken off, nobody waits for them: the servers go, and so do they."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Served:
    """Which methods Fairlead serves; it is asked."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._known: dict[str, bool] = {"": True}

    def __contains__(self, method: str) -> bool:
        if method not in self._known:
            answer = World("served", self._server.channel).attempt(method)
            self._known[method] = not isinstance(answer, Refusal) or answer.code != "UNIMPLEMENTED"
        return self._known[method]


@dataclass(frozen=True)
class Played:
    """What a server answered, and why the script stopped early, if it did."""

    record: dict
    stopped: str | None
    was_overloaded: bool


def play(scenario: Scenario, server: Running, take: int = 1) -> Played:
    world = World(scenario.name, server.channel, take)
    stopped = None
    try:
        scenario.script(world)
    except Exception as error:  # noqa: BLE001  whatever went wrong belongs into the report
        line = traceback.extract_tb(error.__traceback__)[1].lineno
        stopped = f"line {line}: {type(error).__name__}: {error}"
    world.read_runs()
    return Played(world.tree(), stopped, world.was_overloaded)


def needs_another_take(theirs: Played, ours: Played) -> bool:
    """Temporal on a busy machine misses its own deadlines, and the script cannot go on or learns nothing."""
    return theirs.stopped is not None or (theirs.was_overloaded and not ours.was_overloaded)


def found_between(scenario: Scenario, theirs: Played, ours: Played) -> list[Difference]:
    found = list(differences(scenario.name, theirs.record, ours.record))
    if ours.stopped is not None:
        found.insert(0, Difference(f"{scenario.name}/script", "came to its end", ours.stopped))
    return found


# ---- the report ----------------------------------------------------------------------------------


def report(name: str, complaints: list[str]) -> bool:
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if complaints:
        print(f"not ok - differential: {name}: {complaints[0].splitlines()[0]}", flush=True)
    else:
        print(f"ok - differential: {name}", flush=True)
    return not complaints


def complaints_about(entry: Explained, page: str) -> list[str]:
    complaints = [f"expected.toml explains what was not found: {pattern}" for pattern in entry.unseen]
    if f"| {entry.row} |" not in page:
        complaints.append(f"docs/compatibility.md has no row '{entry.row}'")
    return complaints


def chosen(patterns: list[str]) -> list[Scenario]:
    return [it for it in SCENARIOS if not patterns or any(fnmatch.fnmatch(it.name, pattern) for pattern in patterns)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/differential/run", description=__doc__.partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help="names, with * for anything; all when none")
    parser.add_argument("--temporal", required=True, help="binary of Temporal's server")
    parser.add_argument("--fairlead", required=True, help="binary of Fairlead")
    parser.add_argument("--all", action="store_true", help="show explained differences as well")
    parser.add_argument("--show", action="store_true", help="show what Temporal answered")
    arguments = parser.parse_args()
    servers.stop_when_told()

    scenarios = chosen(arguments.scenarios)
    explained = read_explained(HERE / "expected.toml")
    good = self_test.run() if not arguments.scenarios else True
    with running(arguments.temporal, arguments.fairlead) as both, players() as pool:
        served = Served(both[1])
        explained = [entry for entry in explained if entry.needs in served]
        scenarios = [scenario for scenario in scenarios if scenario.needs in served]
        playing = [(scenario, [pool.submit(play, scenario, server) for server in both]) for scenario in scenarios]
        for scenario, futures in playing:
            theirs, ours = (future.result() for future in futures)
            if ended := [line for server in both for line in server.epitaph()]:
                report(scenario.name, ended)
                return 1
            if needs_another_take(theirs, ours):
                theirs, ours = (play(scenario, server, take=2) for server in both)
            if arguments.show:
                print(json.dumps(theirs.record, indent=1, ensure_ascii=False), file=sys.stderr)
            if theirs.stopped is not None:
                good &= report(scenario.name, [f"{scenario.name}: the script failed on Temporal: {theirs.stopped}"])
                continue
            found = found_between(scenario, theirs, ours)
            left = unexplained(found, explained)
            if left and not arguments.all:
                # On a busy machine a timeout may overtake the script. What differs twice is different.
                theirs, ours = (play(scenario, server, take=3) for server in both)
                found = found_between(scenario, theirs, ours)
                left = unexplained(found, explained)
            good &= report(scenario.name, [str(it) for it in (found if arguments.all else left)])
    if not arguments.scenarios:
        page = (ROOT / "docs/compatibility.md").read_text()
        for entry in explained:
            good &= report(f"explained: {entry.row}", complaints_about(entry, page))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
