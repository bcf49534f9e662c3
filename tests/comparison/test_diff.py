"""`diff`: what a change to a model is called, and that names alone are no change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import intonnx
from intonnx.comparison.diff import Difference, diff
from intonnx.comparison.match import match
from support.models import Builder, Fed, Held, s8, u8


def network(
    *,
    scale: float = 0.05,
    offset: int = 0,
    strides: tuple[int, int] = (1, 1),
    activation: str = "",
    quantize_first: bool = False,
    per_channel: float = 0.01,
) -> intonnx.Graph:
    """x -> Q -> Conv -> [activation] -> Transpose -> Q, or with Transpose and Q the other way."""
    weights = np.random.default_rng(1).integers(-90, 90, (6, 3, 3, 3))
    weights[0, 0, 0, 0] = offset
    scales = np.full(6, 0.01, np.float32)
    scales[2] = per_channel
    build = Builder(17)
    x = build.operand(Fed("x", (1, 3, 6, 6), u8(0.02, 114)), 0)
    w = build.operand(Held(weights, s8(scales, axis=0)), 1)
    value = build.node("Conv", [x, w], name="conv", strides=list(strides))
    if activation:
        value = build.node(activation, [value], name="activation")
    params = u8(scale, 100)
    if quantize_first:
        value = build.dequantize(build.quantize(value, params, "codes"), params)
    value = build.node("Transpose", [value], name="moved", perm=[0, 2, 3, 1])
    if not quantize_first:
        value = build.dequantize(build.quantize(value, params, "codes"), params)
    build.node("Identity", [value], name="y")
    build.output("y", np.float32)
    return intonnx.import_model(build.model())


def kinds(found: tuple[Difference, ...]) -> dict[str, set[str]]:
    by_kind: dict[str, set[str]] = {}
    for difference in found:
        by_kind.setdefault(difference.kind, set()).add(difference.name)
    return by_kind


def test_a_graph_does_not_differ_from_itself() -> None:
    assert diff(network(), network()) == ()


def renamed(graph: intonnx.Graph, change: Callable[[str], str]) -> intonnx.Graph:
    """The graph with other names, by way of ONNX."""
    model = intonnx.to_onnx(graph, form="qdq")
    del model.metadata_props[:]  # it tells by name how codes were stored
    names = {n for node in model.graph.node for n in [*node.input, *node.output] if n}
    table = {name: change(name) for name in names}
    for node in model.graph.node:
        node.input[:] = [table.get(n, n) for n in node.input]
        node.output[:] = [table.get(n, n) for n in node.output]
        node.name = change(node.name)
    for value in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        value.name = table.get(value.name, value.name)
    del model.graph.value_info[:]
    return intonnx.import_model(model)


def test_names_alone_are_no_difference() -> None:
    model = intonnx.to_onnx(network(), form="qdq")
    del model.metadata_props[:]
    graph = intonnx.import_model(model)
    other = renamed(graph, lambda name: f"other/{name}")
    pairs = match(graph, other)
    assert set(pairs) == set(graph.types)
    assert set(pairs.values()) == set(other.types)
    assert diff(graph, other) == ()


def test_a_scale() -> None:
    found = diff(network(), network(scale=0.06))
    assert set(kinds(found)) == {"parameters"}
    assert all("0.05:100" in d.first and "0.06:100" in d.second for d in found)


def test_one_scale_of_many_is_named() -> None:
    found = diff(network(), network(per_channel=0.012))
    weights = [d for d in found if d.first.startswith("i8[6,3,3,3], 6 scales")]
    assert [d.kind for d in weights] == ["parameters"]
    assert "0.01 to 0.012" in weights[0].second


def test_weights() -> None:
    (found,) = diff(network(), network(offset=17))
    assert (found.kind, found.second) == ("weights", "1 of 162 elements differ, by at most 17")


def test_codes_of_the_other_signedness_are_parameters_alone() -> None:
    graph = network()
    model = intonnx.to_onnx(graph)
    assert diff(graph, intonnx.import_model(model)) == ()
    del model.metadata_props[:]  # without which nothing tells that codes were moved
    other = intonnx.import_model(model)
    found = [d for d in diff(graph, other) if "[6,3,3,3]" in d.first]
    assert [d.kind for d in found] == ["parameters"]
    assert found[0].second.endswith("the same real values")


def test_an_attribute() -> None:
    found = diff(network(), network(strides=(2, 2)))
    assert ("strides=(1, 1)", "strides=(2, 2)") in {(d.first, d.second) for d in found}


def test_an_operator_more() -> None:
    def lone(first: intonnx.Graph, second: intonnx.Graph) -> list[tuple[str, str]]:
        return [(d.first, d.second) for d in diff(first, second) if "" in (d.first, d.second)]

    ((first, second),) = lone(network(), network(activation="Relu"))
    assert (first, second.split()[0]) == ("", "qnn.clip")
    ((first, second),) = lone(network(activation="Relu"), network())
    assert (first.split()[0], second) == ("qnn.clip", "")


def test_a_signature() -> None:
    one = network()
    model = intonnx.to_onnx(one, form="qdq")
    extra = onnx.helper.make_tensor_value_info("more", onnx.TensorProto.FLOAT, [2])
    model.graph.input.append(extra)
    found = [d for d in diff(one, intonnx.import_model(model)) if d.kind == "signature"]
    assert [(d.name, d.first, d.second) for d in found] == [("more", "", "in the inputs, f32[2]")]


def test_a_moved_quantizer() -> None:
    def chain(before: bool) -> intonnx.Graph:
        # Float operators that have no integer form keep the quantizer where it was.
        build = Builder(17)
        value = build.feed("x", (4, 4), np.float32)
        for part in range(2):
            value = build.node("Hardmax", [value], name=f"h{part}")
            if before == (part == 0):
                params = u8(0.01, 3)
                value = build.dequantize(build.quantize(value, params, f"codes{part}"), params)
        build.node("Identity", [value], name="y")
        build.output("y", np.float32)
        return intonnx.import_model(build.model())

    found = diff(chain(True), chain(False))
    (moved,) = [d for d in found if d.kind == "quantizer"]
    assert moved.first != moved.second
    assert moved.first.startswith("at '")


def test_weights_that_are_nan_on_both_sides_are_equal() -> None:
    def held(value: float) -> intonnx.Graph:
        constant = numpy_helper.from_array(np.array([np.nan, value], np.float32), "c")
        info: Any = [onnx.helper.make_tensor_value_info(n, 1, [2]) for n in "xy"]
        node = onnx.helper.make_node("Add", ["x", "c"], ["y"])
        body = onnx.helper.make_graph([node], "g", info[:1], info[1:], [constant])
        ids = [onnx.helper.make_opsetid("", 17)]
        return intonnx.import_model(onnx.helper.make_model(body, opset_imports=ids))

    assert diff(held(1.0), held(1.0)) == ()
    (found,) = diff(held(1.0), held(2.5))
    assert found.second == "1 of 2 elements differ, by at most 1.5"
