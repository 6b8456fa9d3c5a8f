"""The server under attack, and calls that carry any bytes to any method."""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import grpc
from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
)

WORKFLOW_SERVICE = "temporal.api.workflowservice.v1.WorkflowService"
OPERATOR_SERVICE = "temporal.api.operatorservice.v1.OperatorService"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def methods(protos: Path, service: str) -> list[str]:
    """The full names of a service's methods, read off its proto."""
    package = service.rpartition(".")[0].replace(".", "/")
    text = (protos / package / "service.proto").read_text()
    return [f"/{service}/{name}" for name in re.findall(r"^\s*rpc (\w+)", text, re.M)]


class Target:
    """A server of our own in a temporary folder."""

    def __init__(self, binary: str) -> None:
        self.port, self.http_port = free_port(), free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="fairlead-hostile-")
        self._process = subprocess.Popen(
            [binary, "server", "--grpc-port", str(self.port), "--http-port", str(self.http_port)]
            + ["--data-dir", f"{self._folder.name}/data"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.channel = self.connect()
        grpc.channel_ready_future(self.channel).result(timeout=60)

    def connect(self) -> grpc.Channel:
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        return grpc.insecure_channel(f"127.0.0.1:{self.port}", options=options)

    def call(self, method: str, body: bytes, timeout: float = 20, metadata=None) -> tuple[grpc.StatusCode, bytes]:
        """Sends raw bytes and gives the code with the answer's bytes, or with the error's text."""
        raw = self.channel.unary_unary(method)
        try:
            return grpc.StatusCode.OK, raw(body, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            return error.code(), (error.details() or "").encode()

    def open_socket(self, port: int | None = None) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port or self.port), timeout=20)
        return connection

    def serve_honestly(self) -> str | None:
        """Starts a workflow and reads it back, as an ordinary client; what went wrong, or None."""
        if self._process.poll() is not None:
            return f"the server ended with code {self._process.returncode}"
        workflow_id = f"honest-{uuid.uuid4()}"
        start = StartWorkflowExecutionRequest(
            namespace="default",
            workflow_id=workflow_id,
            workflow_type=WorkflowType(name="Honest"),
            task_queue=TaskQueue(name="honest"),
            request_id=str(uuid.uuid4()),
        )
        code, answer = self.call(f"/{WORKFLOW_SERVICE}/StartWorkflowExecution", start.SerializeToString())
        if code != grpc.StatusCode.OK:
            return f"an honest start got {code}: {answer!r}"
        run_id = StartWorkflowExecutionResponse.FromString(answer).run_id
        describe = DescribeWorkflowExecutionRequest(
            namespace="default", execution=WorkflowExecution(workflow_id=workflow_id)
        )
        code, answer = self.call(f"/{WORKFLOW_SERVICE}/DescribeWorkflowExecution", describe.SerializeToString())
        if code != grpc.StatusCode.OK:
            return f"an honest describe got {code}: {answer!r}"
        info = DescribeWorkflowExecutionResponse.FromString(answer).workflow_execution_info
        return None if info.execution.run_id == run_id else "describe speaks of another run"

    def resident_mib(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def stop(self) -> int:
        self.channel.close()
        self._process.terminate()
        deadline = time.monotonic() + 60
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._process.poll() is None:
            self._process.kill()
        code = self._process.wait()
        self._folder.cleanup()
        return code
