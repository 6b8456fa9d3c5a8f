"""Protobuf messages as plain trees in which two servers can be compared.

What a server is free to choose gets a name instead of its value: times, tokens, the ids of runs. What is left has to be
the same.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from typing import Any as Tree

from google.protobuf import any_pb2, descriptor, descriptor_pool, duration_pb2, message_factory, timestamp_pb2
from google.protobuf.message import Message

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

# Opaque to clients, or measured: only whether it is there counts.
OPAQUE = {
    "task_token": "<token>",
    "next_page_token": "<token>",
    "long_poll_token": "<token>",
    "task_id": "<task id>",
    "deleted_namespace": "<name>",
    "history_size_bytes": "<size>",
    "state_size_bytes": "<size>",
    "execution_duration": "<measured>",
    "current_retry_interval": "<measured>",
    "last_access_time": "<time>",
}
# Lists in no order, and what orders them here.
UNORDERED = {
    "pending_activities": "activity_id",
    "pending_children": "initiated_id",
    "workers": "worker_instance_key",
    "workers_info": "worker_heartbeat.worker_instance_key",
}
# Hints to pollers. Both servers may give them or not, as the moment has it.
HINTS = {"poller_scaling_decision", "backlog_count_hint"}


class RunNames:
    """Names runs after their workflow and their turn: `<order 2>` is the second run of `order` that was seen."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        # In the order in which they were seen.
        self.runs: list[tuple[str, str]] = []

    def add(self, workflow_id: str, run_id: str) -> None:
        if self.add_name(workflow_id, run_id):
            self.runs.append((workflow_id, run_id))

    def add_name(self, owner: str, run_id: str) -> bool:
        """Of a run that has no history, too."""
        if run_id in self._names or not UUID.fullmatch(run_id):
            return False
        self._counts[owner] = self._counts.get(owner, 0) + 1
        self._names[run_id] = f"<{owner} {self._counts[owner]}>"
        return True

    def add_all(self, message: Message) -> None:
        """Learns every pair of a workflow id and a run id in a message."""
        for part in messages_in(message):
            fields = part.DESCRIPTOR.fields_by_name
            if "workflow_id" in fields and "run_id" in fields:
                self.add(part.workflow_id, part.run_id)

    def name(self, run_id: str) -> str:
        return self._names.get(run_id, "<uuid>")

    def replace_in(self, text: str) -> str:
        return UUID.sub(lambda match: self.name(match[0]), text)


def messages_in(message: Message) -> Iterator[Message]:
    """The message and all messages inside it, outermost first."""
    yield message
    for field, value in message.ListFields():
        if field.type != descriptor.FieldDescriptor.TYPE_MESSAGE:
            continue
        if is_map(field):
            parts = [part for part in value.values() if isinstance(part, Message)]
        else:
            parts = value if field.is_repeated else [value]
        for part in parts:
            yield from messages_in(part)


def is_map(field: descriptor.FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def tree_of(message: Message, runs: RunNames) -> Tree:
    """A message as dicts, lists and scalars; fields that are not set are left out."""
    if isinstance(message, timestamp_pb2.Timestamp):
        return "<time>"
    if isinstance(message, duration_pb2.Duration):
        return duration_text(message)
    if isinstance(message, any_pb2.Any):
        return any_tree(message, runs)
    fields = {}
    for field, value in message.ListFields():
        if field.name in HINTS or is_no_time(value) or is_spacing(message, field.name, value):
            continue
        # The type of an event or command says already which attributes it has.
        name = "attributes" if in_attributes(field) else field.name
        if field.name in OPAQUE:
            fields[name] = OPAQUE[field.name]
        elif is_map(field):
            of = field.message_type.fields_by_name["value"]
            named = {key_name(name, number, key): value[key] for number, key in enumerate(sorted(value), start=1)}
            fields[name] = {key: scalar_or_tree(of, item, runs) for key, item in named.items()}
        elif field.name == "request_id":
            fields[name] = made_by_server(value)
        elif field.is_repeated:
            items = sorted(value, key=operator.attrgetter(UNORDERED[name])) if name in UNORDERED else value
            fields[name] = [scalar_or_tree(field, item, runs) for item in items]
        else:
            fields[name] = scalar_or_tree(field, value, runs)
    return fields


def key_name(map_name: str, number: int, key: object) -> str:
    return f"<query {number}>" if map_name == "queries" else made_by_server(str(key))


def made_by_server(text: str) -> str:
    """Ids that clients choose here are words; those with a UUID in them come from the server, in any form."""
    return "<made by the server>" if UUID.search(text) else text


def is_no_time(value: Tree) -> bool:
    """The beginning of 1970, or of the first year: a server's way to say that there is none."""
    return isinstance(value, timestamp_pb2.Timestamp) and value.seconds <= 0


def is_spacing(message: Message, name: str, value: Tree) -> bool:
    """Runs of a chain begin a second apart, at least: whether one has to wait depends on how long the last one took."""
    return name == "first_workflow_task_backoff" and message.continued_execution_run_id != "" and value.seconds < 1


def in_attributes(field: descriptor.FieldDescriptor) -> bool:
    return field.containing_oneof is not None and field.containing_oneof.name == "attributes"


def scalar_or_tree(field: descriptor.FieldDescriptor, value: Tree, runs: RunNames) -> Tree:
    if isinstance(value, Message):
        return tree_of(value, runs)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return short_name(field.enum_type, known.name) if known else value
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return value.hex()
    return runs.replace_in(value) if isinstance(value, str) else value


def short_name(enum: descriptor.EnumDescriptor, name: str) -> str:
    """EVENT_TYPE_TIMER_FIRED is TIMER_FIRED."""
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"
    return name.removeprefix(prefix)


def duration_text(duration: duration_pb2.Duration) -> str:
    # Nobody asks for a fraction of a millisecond: this one was measured.
    if duration.nanos % 1_000_000 != 0:
        return f"<at most {duration.seconds + 1}s>"
    return f"{duration.seconds + duration.nanos / 1e9:g}s"


def any_tree(packed: any_pb2.Any, runs: RunNames) -> Tree:
    name = packed.type_url.rpartition("/")[2]
    try:
        kind = message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(name))
        return {"type": name, **tree_of(kind.FromString(packed.value), runs)}
    except KeyError:
        return {"type": name, "value": packed.value.hex()}
