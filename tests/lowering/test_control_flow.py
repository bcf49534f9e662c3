"""If, Loop and Scan: quantizers in their bodies make integers there, in every form of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx.comparison.diff import diff
from intonnx.ir.graph import bodies_of
from intonnx.ir.mlir import print_mlir
from intonnx.ir.ops.conv import Conv2d
from intonnx.ir.text import parse, weights_of
from support.models import Array
from support.runtime import run_onnxruntime

F32, SHAPE = TensorProto.FLOAT, [1, 3, 6, 6]
RNG = np.random.default_rng(0)
PARAMETERS = {
    "w": RNG.integers(-100, 100, (3, 3, 3, 3)).astype(np.int8),
    "sx": np.float32(0.02), "zx": np.uint8(120), "sw": np.float32(0.01), "zw": np.int8(0),
    "sy": np.float32(0.1), "zy": np.uint8(128),
}  # fmt: skip


def value(name: str, element: int = F32, shape: Sequence[int | str] = SHAPE) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def conv(x: str, prefix: str, result: str) -> list[onnx.NodeProto]:
    """x -> Q -> DQ -> Conv -> Q -> DQ -> result, with parameters from outside."""
    n, make = prefix, helper.make_node
    return [
        make("QuantizeLinear", [x, "sx", "zx"], [f"{n}q"], name=f"{n}q"),
        make("DequantizeLinear", [f"{n}q", "sx", "zx"], [f"{n}d"], name=f"{n}d"),
        make("DequantizeLinear", ["w", "sw", "zw"], [f"{n}wd"], name=f"{n}wd"),
        make("Conv", [f"{n}d", f"{n}wd"], [f"{n}c"], name=f"{n}conv", pads=[1, 1, 1, 1]),
        make("QuantizeLinear", [f"{n}c", "sy", "zy"], [f"{n}cq"], name=f"{n}cq"),
        make("DequantizeLinear", [f"{n}cq", "sy", "zy"], [result], name=f"{n}out"),
    ]


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
) -> onnx.ModelProto:
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in PARAMETERS.items()]
    body = helper.make_graph(nodes, "outside", inputs, outputs, held)
    made = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def branches() -> onnx.ModelProto:
    """Both branches convolve what is outside, with names that both use."""
    then = helper.make_graph(conv("x", "b_", "out"), "then", [], [value("out")])
    nodes = [helper.make_node("Neg", ["x"], ["negative"]), *conv("negative", "b_", "out")]
    other = helper.make_graph(nodes, "other", [], [value("out")])
    choose = helper.make_node(
        "If", ["c"], ["y"], name="choose", then_branch=then, else_branch=other
    )
    return model([choose], [value("c", TensorProto.BOOL, []), value("x")], [value("y")])


def loop() -> onnx.ModelProto:
    """Carried through a convolution, each turn kept; stops early when `limit` is reached."""
    less = helper.make_node("Less", ["i", "limit"], ["again"])
    row = helper.make_node("Identity", ["after"], ["row"])
    body = helper.make_graph(
        [less, *conv("before", "l_", "after"), row], "body",
        [value("i", 7, []), value("cond", 9, []), value("before")],
        [value("again", 9, []), value("after"), value("row")],
    )  # fmt: skip
    node = helper.make_node("Loop", ["n", "", "x"], ["y", "rows"], name="loop", body=body)
    inputs = [value("n", 7, []), value("limit", 7, []), value("x")]
    return model([node], inputs, [value("y"), value("rows", F32, ["t", *SHAPE])])


def scan() -> onnx.ModelProto:
    """A sum over slices taken from behind along axis 1, each one convolved."""
    nodes = [*conv("part", "s_", "real"), helper.make_node("Add", ["sum", "real"], ["next"])]
    nodes.append(helper.make_node("Identity", ["real"], ["kept"]))
    body = helper.make_graph(
        nodes, "body", [value("sum"), value("part")], [value("next"), value("kept")]
    )
    node = helper.make_node(
        "Scan", ["start", "parts"], ["total", "all"], name="scan", body=body, num_scan_inputs=1,
        scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[-1],
        scan_output_directions=[1],
    )  # fmt: skip
    parts = value("parts", F32, [1, 4, 3, 6, 6])
    outputs = [value("total"), value("all", F32, [*SHAPE, 4])]
    return model([node], [value("start"), parts], outputs)


def nested() -> onnx.ModelProto:
    """An If in a Loop; one branch gives a value from outside as it is."""
    keep = helper.make_node("Identity", ["x"], ["kept"])
    then = helper.make_graph(conv("before", "n_", "out"), "then", [], [value("out")])
    other = helper.make_graph([keep], "other", [], [value("kept")])
    zero = numpy_helper.from_array(np.int64(1), "one")
    nodes = [
        helper.make_node("Identity", ["cond"], ["again"]),
        helper.make_node("Less", ["i", "one"], ["first"]),
        helper.make_node("If", ["first"], ["after"], then_branch=then, else_branch=other),
    ]
    body = helper.make_graph(
        nodes, "body", [value("i", 7, []), value("cond", 9, []), value("before")],
        [value("again", 9, []), value("after")], [zero],
    )  # fmt: skip
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)
    return model([node], [value("n", 7, []), value("x")], [value("y")])


def real(seed: int, shape: Sequence[int] = SHAPE) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


FEEDS: dict[str, tuple[onnx.ModelProto, dict[str, Array]]] = {
    "then": (branches(), {"c": np.array(True), "x": real(1)}),
    "else": (branches(), {"c": np.array(False), "x": real(2)}),
    "loop": (loop(), {"n": np.array(4), "limit": np.array(9), "x": real(3)}),
    "loop-stops": (loop(), {"n": np.array(9), "limit": np.array(1), "x": real(4)}),
    "loop-never": (loop(), {"n": np.array(0), "limit": np.array(1), "x": real(5)}),
    "scan": (scan(), {"start": real(6), "parts": real(7, (1, 4, 3, 6, 6))}),
    "nested": (nested(), {"n": np.array(2), "x": real(8)}),
}


def all_graphs(graph: intonnx.Graph) -> Iterator[intonnx.Graph]:
    yield graph
    for node in graph.nodes:
        for body in bodies_of(node.op).values():
            yield from all_graphs(body)


def operators(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators(attribute.g)


@pytest.mark.parametrize("case", FEEDS.values(), ids=list(FEEDS))
def test_as_in_onnxruntime(case: tuple[onnx.ModelProto, dict[str, Array]]) -> None:
    proto, feeds = case
    graph = intonnx.import_model(proto)
    wanted = run_onnxruntime(proto, feeds, optimized=False, exact=False)
    for numerics in ("qlinear", "qdq", "fixed"):
        found = intonnx.compile(graph, numerics).run(feeds)
        for name, array in wanted.items():
            assert found[name].shape == array.shape
            # One quantum, which is 0.1; real values of codes are rounded to float32.
            apart = np.abs(found[name] - array).max(initial=0)
            assert apart <= 0.1 + 1e-5, (numerics, name)


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
@pytest.mark.parametrize("case", FEEDS.values(), ids=list(FEEDS))
def test_exports(case: tuple[onnx.ModelProto, dict[str, Array]], form: str) -> None:
    proto, feeds = case
    graph = intonnx.import_model(proto)
    exported = intonnx.to_onnx(graph, form=form)
    onnx.checker.check_model(exported, full_check=True)
    ops = set(operators(exported.graph))
    assert ("QLinearConv" in ops, "Conv" in ops) == (form == "qlinear", form == "qdq")
    again = intonnx.import_model(exported)
    convolutions = [n for g in all_graphs(again) for n in g.nodes if isinstance(n.op, Conv2d)]
    assert len(convolutions) == sum(
        isinstance(n.op, Conv2d) for g in all_graphs(graph) for n in g.nodes
    )
    ours = intonnx.compile(graph).run(feeds)
    for optimized in (False, True) if form == "qlinear" else ():
        found = run_onnxruntime(exported, feeds, optimized=optimized, exact=False)
        for name, array in ours.items():
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("case", FEEDS.values(), ids=list(FEEDS))
def test_text_and_file(case: tuple[onnx.ModelProto, dict[str, Array]], tmp_path: Path) -> None:
    graph = intonnx.import_model(case[0])
    assert parse(str(graph), graph.constants) == graph
    assert parse(str(graph), weights_of(graph)) == graph
    graph.save(tmp_path / "g.intonnx")
    assert intonnx.load(tmp_path / "g.intonnx") == graph
    assert diff(graph, graph) == ()
    assert print_mlir(graph)


def test_coverage_names_the_way_to_a_node() -> None:
    found = {n.name: n.state for n in intonnx.coverage(intonnx.import_model(branches())).nodes}
    assert found["choose/then_branch/b_conv"] == "integer"
    assert found["choose/else_branch/b_conv"] == "integer"
    assert found["choose/then_branch/b_wd"] == "folded"
    assert found["choose"] == "float"  # Neg stays
    assert len(found) == 1 + len(list(operators(branches().graph))) - 1
    only = {n.name: n.state for n in intonnx.coverage(intonnx.import_model(loop())).nodes}
    assert only["loop"] == "integer"
    assert "float" not in only.values()


def test_a_difference_in_a_body_is_named() -> None:
    one, other = loop(), loop()
    scale = next(t for t in other.graph.initializer if t.name == "sy")
    scale.CopyFrom(numpy_helper.from_array(np.float32(0.2), "sy"))
    found = diff(intonnx.import_model(one), intonnx.import_model(other))
    assert found
    assert all(difference.name.startswith("y/body/") for difference in found)


def test_a_body_that_is_not_valid_is_an_error_of_its_node() -> None:
    proto = branches()
    then = next(a for a in proto.graph.node[0].attribute if a.name == "then_branch")
    then.g.node[3].input[0] = "nowhere"
    with pytest.raises(intonnx.ImportFailure, match="nowhere"):
        intonnx.import_model(proto)
