"""Attacks the server's ports with bad input and checks that it answers clearly and goes on serving."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import grpc
from target import OPERATOR_SERVICE, WORKFLOW_SERVICE, Target, methods
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    PollWorkflowTaskQueueRequest,
    RespondActivityTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest,
    SignalWorkflowExecutionRequest,
)

Code = grpc.StatusCode
# What a bad request may get. Codes that clients retry (UNAVAILABLE, INTERNAL, UNKNOWN, …) would make them
# send the same bad bytes for ever.
CLEAR = {Code.OK, Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION, Code.UNIMPLEMENTED,
         Code.ALREADY_EXISTS, Code.PERMISSION_DENIED, Code.DEADLINE_EXCEEDED}  # fmt: skip

RESIDENT_MIB_MAX = 1024


class Attacks:
    def __init__(self, target: Target, protos: Path, rng: random.Random) -> None:
        self.target = target
        self.rng = rng
        self.methods = methods(protos, WORKFLOW_SERVICE) + methods(protos, OPERATOR_SERVICE)

    def _expect_clear(self, method: str, body: bytes) -> str | None:
        # Polls with nothing wrong in them would be parked: the deadline ends those.
        code, text = self.target.call(method, body, timeout=3)
        if code in CLEAR:
            return None
        return f"{method} with {body[:40].hex()} got {code}: {text[:200]!r}"

    def _each_method(self, make_body: Callable[[], bytes], times: int = 1) -> str | None:
        for method in self.methods:
            for _ in range(times):
                if wrong := self._expect_clear(method, make_body()):
                    return wrong
        return None

    def an_empty_request_to_any_method_gets_a_clear_code(self) -> str | None:
        return self._each_method(lambda: b"")

    def random_bytes_to_any_method_get_a_clear_code(self) -> str | None:
        return self._each_method(lambda: self.rng.randbytes(self.rng.randrange(1, 300)), times=3)

    def lengths_that_lie_get_a_clear_code(self) -> str | None:
        lies = [b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x7f" + b"x" * 5, b"\x0a" + b"\xff" * 12, b"\x0b" * 200]
        return self._each_method(lambda: self.rng.choice(lies), times=2)

    def messages_nested_without_end_get_a_clear_code(self) -> str | None:
        body = b""
        for _ in range(3000):
            length, encoded = len(body), b""
            while length >= 0x80:
                encoded, length = encoded + bytes([length & 0x7F | 0x80]), length >> 7
            body = b"\x1a" + encoded + bytes([length]) + body
        return self._each_method(lambda: body)

    def text_that_is_not_utf8_gets_a_clear_code(self) -> str | None:
        return self._each_method(lambda: b"\x0a\x04\xff\xfe\xfd\xfc\x12\x02\xc3\x28")

    def a_message_above_the_limit_is_refused_by_size(self) -> str | None:
        body = b"\x0a\x07default" + b"\x12\x80\x80\xc0\x02" + b"x" * (5 << 20)
        code, text = self.target.call(f"/{WORKFLOW_SERVICE}/StartWorkflowExecution", body)
        good = code == Code.RESOURCE_EXHAUSTED and b"larger than max" in text
        return None if good else f"got {code}: {text[:200]!r}"

    def an_unknown_method_or_service_is_unimplemented(self) -> str | None:
        for method in (f"/{WORKFLOW_SERVICE}/Nothing", "/no.such.Service/Method", "/", "/x", f"/{WORKFLOW_SERVICE}/"):
            code, text = self.target.call(method, b"")
            if code != Code.UNIMPLEMENTED:
                return f"{method} got {code}: {text!r}"
        return None

    def forged_tokens_are_refused(self) -> str | None:
        for _ in range(50):
            token = self.rng.randbytes(self.rng.randrange(1, 120))
            for name, request in (
                ("RespondWorkflowTaskCompleted", RespondWorkflowTaskCompletedRequest(task_token=token)),
                ("RespondActivityTaskCompleted", RespondActivityTaskCompletedRequest(task_token=token)),
                ("GetWorkflowExecutionHistory", GetWorkflowExecutionHistoryRequest(
                    namespace="default", execution=WorkflowExecution(workflow_id="w"), next_page_token=token)),
            ):  # fmt: skip
                code, text = self.target.call(f"/{WORKFLOW_SERVICE}/{name}", request.SerializeToString())
                if code not in (Code.INVALID_ARGUMENT, Code.NOT_FOUND):
                    return f"{name} got {code}: {text!r}"
        return None

    def ids_of_any_bytes_and_length_are_refused_or_served(self) -> str | None:
        for workflow_id in ("\0", "a" * 1001, "ü" * 600, "../../etc/passwd", "%s%n", "'; drop table", "\u202e"):
            request = SignalWorkflowExecutionRequest(
                namespace="default", workflow_execution=WorkflowExecution(workflow_id=workflow_id), signal_name="s"
            )
            code, text = self.target.call(f"/{WORKFLOW_SERVICE}/SignalWorkflowExecution", request.SerializeToString())
            if code not in (Code.INVALID_ARGUMENT, Code.NOT_FOUND):
                return f"{workflow_id[:20]!r} got {code}: {text!r}"
        return None

    def too_many_and_too_large_headers_get_an_answer(self) -> str | None:
        # On a connection of their own: the server may well close it.
        for headers in ([("x-large", "y" * 500_000)], [(f"x-{i}", "y" * 100) for i in range(500)]):
            with self.target.connect() as channel:
                try:
                    channel.unary_unary(f"/{WORKFLOW_SERVICE}/GetSystemInfo")(b"", timeout=20, metadata=headers)
                except grpc.RpcError as error:
                    if error.code() == Code.DEADLINE_EXCEEDED:
                        return f"{len(headers)} headers got no answer"
        return None

    def bytes_that_are_not_http2_close_the_connection(self) -> str | None:
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        for attack in (
            self.rng.randbytes(4096),
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            preface[:10],
            preface + self.rng.randbytes(4096),
            preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\xff\xff\xff\x00\x05\x00\x00\x00\x01",
            preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 2000,
        ):
            connection = self.target.open_socket()
            try:
                connection.sendall(attack)
                connection.shutdown(1)
                while connection.recv(65536):
                    pass
            except OSError:
                pass  # a reset is as good an end as any
            finally:
                connection.close()
        return None

    def many_silent_connections_do_not_keep_others_out(self) -> str | None:
        silent = [self.target.open_socket() for _ in range(300)]
        wrong = self.target.serve_honestly()
        for connection in silent:
            connection.close()
        return wrong

    def polls_that_vanish_take_no_task_with_them(self) -> str | None:
        """A thousand polls come and go; then one workflow's task reaches the one that stays."""
        queue = TaskQueue(name="honest")
        poll = PollWorkflowTaskQueueRequest(namespace="default", task_queue=queue, identity="ghost")
        raw = self.target.channel.unary_unary(f"/{WORKFLOW_SERVICE}/PollWorkflowTaskQueue")
        drained = 0
        while raw(poll.SerializeToString(), timeout=4):
            drained += 1  # what the attacks before this one left
        futures = [raw.future(poll.SerializeToString(), timeout=30) for _ in range(1000)]
        for future in futures:
            future.cancel()
        if wrong := self.target.serve_honestly():
            return wrong
        # The task may have met a poll on its way out; then it comes back, and a later poll gets it.
        for _ in range(10):
            if raw(poll.SerializeToString(), timeout=12):
                return None
        return "the task was lost to a poll that had gone"

    def bad_http_requests_get_a_client_error(self) -> str | None:
        for attack in (
            b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            b"DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\n" + b"x: " + b"y" * 100_000 + b"\r\n\r\n",
            b"POST /healthz HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            self.rng.randbytes(2000) + b"\r\n\r\n",
        ):
            connection = self.target.open_socket(self.target.http_port)
            answer = b""
            try:
                connection.sendall(attack)
                connection.shutdown(1)
                while block := connection.recv(65536):
                    answer += block
            except OSError:
                pass
            finally:
                connection.close()
            if answer and not answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 5")):
                return f"{attack[:40]!r} got {answer[:80]!r}"
        return None

    def memory_stays_bounded(self) -> str | None:
        resident = self.target.resident_mib()
        return None if resident < RESIDENT_MIB_MAX else f"{resident:.0f} MiB resident"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--protos", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    arguments = parser.parse_args()
    print(f"# seed {arguments.seed}", flush=True)
    target = Target(arguments.binary)
    attacks = Attacks(target, arguments.protos, random.Random(arguments.seed))
    failed = 0
    for name in [name for name in vars(Attacks) if not name.startswith("_") and callable(getattr(attacks, name))]:
        wrong = getattr(attacks, name)() or target.serve_honestly()
        failed += wrong is not None
        print(f"{'not ok' if wrong else 'ok'} - hostile: {name.replace('_', ' ')}{f': {wrong}' if wrong else ''}", flush=True)
    code = target.stop()
    failed += code != 0
    print(f"{'ok' if code == 0 else 'not ok'} - hostile: after all that the server stops in good order", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
