"""Where the time and the memory of a run go, operator by operator."""

from __future__ import annotations

import json
from collections.abc import Sequence

from intonnx.ir.types import Record


class OperatorProfile(Record):
    """One step of a run: an operator, with those that its kernel applies to its own result.

    Attributes:
        node: the operator, as errors name it.
        operators: the names of the operators that the step computes, `qnn.conv2d` and so on.
        results: the values that it makes.
        start: when it began, in seconds from the begin of the run.
        seconds: how long it took.
        result_bytes: the size of its results.
        live_bytes: the size of all values that were alive when it ended, but constants.
        scratch_bytes: the largest size of what it allocated while it ran, its results among it.
    """

    node: str
    operators: tuple[str, ...]
    results: tuple[str, ...]
    start: float
    seconds: float
    result_bytes: int
    live_bytes: int
    scratch_bytes: int


def trace_events(profile: Sequence[OperatorProfile], name: str) -> str:
    """The profile as JSON that Perfetto and chrome://tracing open.

    Source: the Trace Event Format: "X" is a complete event, "C" a counter; times in microseconds.
    """
    events: list[dict[str, object]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}}
    ]
    for step in profile:
        shared: dict[str, object] = {"pid": 1, "tid": 1}
        start = round(step.start * 1e6, 3)
        events.append({
            "name": step.node, "cat": step.operators[0], "ph": "X", "ts": start,
            "dur": round(step.seconds * 1e6, 3), **shared,
            "args": {
                "operators": list(step.operators),
                "results": list(step.results),
                "result_bytes": step.result_bytes,
                "scratch_bytes": step.scratch_bytes,
            },
        })  # fmt: skip
        end = round((step.start + step.seconds) * 1e6, 3)
        live = {"bytes": step.live_bytes}
        events.append({"name": "live values", "ph": "C", "ts": end, **shared, "args": live})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1)
