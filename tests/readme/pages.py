"""Holds the pages to their word: runs README's first workflow, looks for every flag and metric that
the pages name in a server that really runs, and draws their pictures again."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import grpc

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
COMPATIBILITY = ROOT / "docs" / "compatibility.md"
SERVICES = [
    "temporal.api.workflowservice.v1.WorkflowService",
    "temporal.api.operatorservice.v1.OperatorService",
]
OPERATIONS = ROOT / "docs" / "operations.md"
FAIRNESS = ROOT / "docs" / "fairness.md"
SIMULATE = ROOT / "docs" / "simulate.md"
SIMULATIONS = ROOT / "docs" / "simulations"
ADDRESS = "localhost:7233"
START_SECONDS_MAX = 30
PROGRAM_SECONDS_MAX = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server in a temporary folder, for the length of a `with`."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.grpc_port, self.http_port = free_port(), free_port()
        self.log = folder / "server.log"
        self.command = [binary, "server", "--data-dir", str(folder / "data")]
        self.command += ["--grpc-port", str(self.grpc_port), "--http-port", str(self.http_port)]

    def get(self, path: str) -> str:
        address = f"http://127.0.0.1:{self.http_port}{path}"
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.read().decode()

    def __enter__(self) -> Server:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.get("/healthz")
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.process.kill()
                    sys.exit(f"the server did not start:\n{self.log.read_text()}")
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(START_SECONDS_MAX)


def block(text: str, language: str) -> str:
    """The first fenced block of a language."""
    return re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]


def run_first_workflow(server: Server, folder: Path) -> str:
    readme = README.read_text()
    program = block(readme, "python")
    if program.count(ADDRESS) != 1:
        return f"the program should name {ADDRESS} once"
    source = folder / "hello.py"
    source.write_text(program.replace(ADDRESS, f"127.0.0.1:{server.grpc_port}"))
    done = subprocess.run(
        [sys.executable, str(source)], capture_output=True, text=True, timeout=PROGRAM_SECONDS_MAX
    )
    expected = block(readme, "text")
    if done.stdout == expected:
        return ""
    print(done.stderr, file=sys.stderr)
    return f"it printed {done.stdout!r}, and README promises {expected!r}"


def check_flags(binary: str) -> str:
    text = subprocess.run([binary, "server", "--help"], check=True, capture_output=True, text=True).stdout
    known = set(re.findall(r"--[a-z][a-z-]+", text))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", block(OPERATIONS.read_text(), "flags")))
    if named == known - {"--help"}:
        return ""
    return f"no such flags: {sorted(named - known)}; not in the page: {sorted(known - named - {'--help'})}"


def check_metrics(server: Server) -> str:
    served = set(re.findall(r"^# TYPE (fairlead_\w+) ", server.get("/metrics"), re.MULTILINE))
    named = set(re.findall(r"`(fairlead_\w+)`", OPERATIONS.read_text()))
    if named == served:
        return ""
    return f"not served: {sorted(named - served)}; not in the page: {sorted(served - named)}"


def check_methods(server: Server) -> str:
    """The page names every method of the API once, and a server refuses those that it says are not built."""
    rows = re.findall(r"^\| `(\w+)` \| (served|not built) \|", COMPATIBILITY.read_text(), re.MULTILINE)
    states = dict(rows)
    methods = {}
    for service in SERVICES:
        proto = Path(sys.argv[2], *service.split(".")[:-1], "service.proto").read_text()
        for name in re.findall(r"^\s*rpc (\w+)", proto, re.MULTILINE):
            methods[name] = f"/{service}/{name}"
    if len(rows) != len(states) or states.keys() != methods.keys():
        return f"missing: {sorted(methods.keys() - states)}; unknown: {sorted(states.keys() - methods)}"
    wrong = []
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        for name, method in methods.items():
            try:
                channel.unary_unary(method)(b"", timeout=PROGRAM_SECONDS_MAX)
                code = grpc.StatusCode.OK
            except grpc.RpcError as error:
                code = error.code()
            if (code == grpc.StatusCode.UNIMPLEMENTED) != (states[name] == "not built"):
                wrong.append(f"{name} is said to be {states[name]} and answers {code.name}")
    return "; ".join(wrong)


def check_pictures(binary: str, folder: Path) -> str:
    """The page shows every picture and names every plan, and the pictures are what the command draws today."""
    page = FAIRNESS.read_text()
    kept = sorted(SIMULATIONS.glob("*.svg"))
    wrong = [] if kept else ["there are none"]
    for picture in kept:
        drawn = folder / "drawn.svg"
        simulate = [binary, "simulate", str(picture.with_suffix(".toml")), "--plot", str(drawn)]
        subprocess.run(simulate, check=True, stdout=subprocess.DEVNULL)
        if picture.read_text() != drawn.read_text():
            wrong.append(f"{picture.name} is another one; docs/simulations/draw makes it anew")
    for file in [*kept, *SIMULATIONS.glob("*.toml")]:
        if f"(simulations/{file.name})" not in page:
            wrong.append(f"{file.name} is not on the page")
    return "; ".join(wrong)


def check_printed(binary: str) -> str:
    """What the page says a command prints is what it prints."""
    blocks = re.findall(r"^```console\n\$ fairlead (.*)\n((?:.*\n)*?)```$", SIMULATE.read_text(), re.MULTILINE)
    for arguments, printed in blocks:
        done = subprocess.run([binary, *arguments.split()], cwd=ROOT, check=True, capture_output=True, text=True)
        if done.stdout != printed:
            return f"fairlead {arguments} prints\n{done.stdout}"
    return "" if blocks else "it shows no command"


def check_plan(binary: str, folder: Path) -> str:
    """The file with every field is one that the command plays."""
    plan = folder / "plan.toml"
    plan.write_text(block(SIMULATE.read_text(), "toml"))
    done = subprocess.run([binary, "simulate", str(plan)], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def main() -> int:
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Server(binary, folder) as server:
            wrong = {
                "the first workflow of README prints what README says": run_first_workflow(server, folder),
                "docs/operations.md names every flag, and only flags that exist": check_flags(binary),
                "the pictures of docs/fairness.md are what fairlead simulate draws": check_pictures(binary, folder),
                "docs/simulate.md shows what fairlead simulate prints": check_printed(binary),
                "docs/simulate.md has a file that fairlead simulate plays": check_plan(binary, folder),
                "docs/compatibility.md names every method with its state": check_methods(server),
                "docs/operations.md names every metric, and only metrics that exist": check_metrics(server),
            }
    for claim, complaint in wrong.items():
        print(f"not ok - readme: {claim}: {complaint}" if complaint else f"ok - readme: {claim}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
