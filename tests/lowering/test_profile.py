"""`Executable.profile`: every step with its time and memory, and what trace viewers open."""

from __future__ import annotations

import itertools
import json

import numpy as np

import intonnx
from intonnx.lowering.profile import trace_events
from support.float_networks import SHAPE
from support.models import Builder, Fed, Held, s8, u8

X = np.random.default_rng(0).normal(0, 1, (8, *SHAPE[1:])).astype(np.float32)


def executable() -> intonnx.Executable:
    """Q, a convolution whose requantize its kernel applies, a sigmoid, DQ."""
    rng = np.random.default_rng(0)
    build = Builder(17)
    x = build.operand(Fed("x", X.shape, u8(0.05, 128)), 0)
    w = build.operand(Held(rng.integers(-99, 99, (16, 3, 3, 3)), s8(0.01)), 1)
    c = build.quantize(build.node("Conv", [x, w], pads=[1, 1, 1, 1]), u8(0.1, 100), "c")
    y = build.node("Sigmoid", [build.dequantize(c, u8(0.1, 100))])
    build.output(build.dequantize(build.quantize(y, u8(1 / 256), "s"), u8(1 / 256), "y"))
    return intonnx.compile(intonnx.import_model(build.model()))


def test_every_step_is_measured_in_order() -> None:
    exe = executable()
    steps = exe.profile({"x": X})
    made = [name for step in steps for name in step.results]
    assert made[0] == "x_q"
    assert made[-1] == "y"
    fused = next(step for step in steps if step.operators[0] == "qnn.conv2d")
    assert fused.operators[:2] == ("qnn.conv2d", "qnn.requantize")
    starts = [step.start for step in steps]
    assert starts == sorted(starts)
    for first, second in itertools.pairwise(steps):
        assert first.seconds > 0
        assert first.start + first.seconds <= second.start


def test_sizes_are_those_of_the_arrays() -> None:
    steps = executable().profile({"x": X})
    quantize, last = steps[0], steps[-1]
    assert quantize.result_bytes == X.size  # u8
    assert quantize.live_bytes == X.nbytes + X.size
    assert quantize.scratch_bytes >= quantize.result_bytes
    assert last.result_bytes == 8 * 16 * 8 * 8 * 4


def test_a_profile_changes_no_result() -> None:
    exe = executable()
    wanted = exe.run({"x": X})["y"]
    exe.profile({"x": X})
    np.testing.assert_array_equal(exe.run({"x": X})["y"], wanted)


def test_the_events_are_those_of_the_trace_event_format() -> None:
    steps = executable().profile({"x": X})
    found = json.loads(trace_events(steps, "net"))
    complete = [event for event in found["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in complete] == [step.node for step in steps]
    for event, step in zip(complete, steps, strict=True):
        assert event.keys() >= {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}
        assert abs(event["dur"] - step.seconds * 1e6) < 0.01
    counters = [event for event in found["traceEvents"] if event["ph"] == "C"]
    assert [event["args"]["bytes"] for event in counters] == [step.live_bytes for step in steps]
