"""The facts of a report, held against the graph and its trace."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import intonnx
from intonnx.report.collect import collect
from intonnx.report.facts import Facts
from intonnx.report.page import render
from support.models import Array, Builder, Fed, Held, s8, u8


def build(name: str = "conv") -> intonnx.Graph:
    """x -> Q -> Conv -> Q -> DQ -> Hardmax -> y."""
    draw = Builder(17)
    x = draw.operand(Fed("x", ("N", 3, 6, 6), u8(0.02, 114)), 0)
    weights = np.random.default_rng(0).integers(-128, 128, (4, 3, 3, 3))
    value = draw.node("Conv", [x, draw.operand(Held(weights, s8(0.01)), 1)], name=name)
    value = draw.dequantize(draw.quantize(value, u8(0.05, 100), "codes"), u8(0.05, 100))
    draw.node("Hardmax", [value], name="y")
    draw.output("y", np.float32)
    return intonnx.import_model(draw.model())


def sample() -> dict[str, Array]:
    return {"x": np.random.default_rng(1).normal(size=(2, 3, 6, 6)).astype(np.float32)}


@pytest.fixture(scope="module")
def facts() -> Facts:
    return collect(build(), "model.onnx", [sample(), sample()], "two inputs")


def test_shares_and_counts_are_those_of_the_coverage(facts: Facts) -> None:
    found = intonnx.coverage(build())
    assert facts.node_share == found.integer_share
    assert facts.product_share == found.integer_multiply_accumulate_share
    assert facts.counts["float"] == found.float == 1
    assert facts.nodes == found.nodes


def test_histograms_count_every_element(facts: Facts) -> None:
    graph, trace = build(), intonnx.compile(build()).trace(sample())
    for value in facts.values:
        histogram, kind = value.histogram, graph.types[value.name]
        assert histogram is not None
        runs = 1 if value.role == "constant" else 2
        array = trace[value.name]
        assert sum(histogram.counts) == runs * array.size
        if kind.quant is not None and kind.quant.storage.bits == 8:
            ends = [np.mean(array == end) for end in (kind.quant.qmin, kind.quant.qmax)]
            assert histogram.ends == pytest.approx(ends)
            centre = histogram.low + histogram.width * (np.arange(len(histogram.counts)) + 0.5)
            mean = float(np.average(centre, weights=histogram.counts))
            assert mean == pytest.approx(array.mean(), abs=histogram.width)
        else:
            assert histogram.ends is None


def test_operators_point_at_their_values(facts: Facts) -> None:
    graph = build()
    for node, operator in zip(graph.nodes, facts.operators, strict=True):
        names = [None if i is None else facts.values[i].name for i in operator.operands]
        assert names == [name or None for name in node.operands]
        assert [facts.values[i].name for i in operator.results] == list(node.results)


def test_a_float_operator_has_its_reason_and_its_remedy(facts: Facts) -> None:
    (found,) = [operator for operator in facts.operators if operator.state == "float"]
    assert (found.title, found.code) == ("onnx.Hardmax", "no-integer-form")
    assert found.remedy.startswith("Replace the operator")


def test_errors_and_ranges_of_a_sum(facts: Facts) -> None:
    (conv,) = [operator for operator in facts.operators if operator.title == "qnn.conv2d"]
    assert conv.range is not None
    assert conv.range == intonnx.accumulator_ranges(build())[0]
    errors = [operator.error for operator in facts.operators if operator.error is not None]
    assert errors
    assert all(error.largest <= 1 for error in errors if error.unit == "quanta")


def test_a_graph_that_cannot_run_still_has_a_report() -> None:
    node = helper.make_node("Unheard", ["x"], ["y"], domain="some.where")
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    body = helper.make_graph([node], "g", values[:1], values[1:])
    ids = [helper.make_opsetid("", 17), helper.make_opsetid("some.where", 1)]
    graph = intonnx.import_model(helper.make_model(body, opset_imports=ids))
    found = collect(graph, "m.onnx", [{"x": np.zeros(2, np.float32)}], "an input")
    assert found.inputs_note.startswith("nothing was run: ")
    assert [value.histogram for value in found.values] == [None, None]


def test_the_page_asks_nothing_of_the_network(facts: Facts) -> None:
    page = render(facts)
    assert "src=" not in page[: page.index('id="facts"')]
    assert "<link" not in page
    assert "default-src 'none'" in page


def test_names_are_only_names() -> None:
    name = '</script><script>alert("1")</script><!--'
    page = render(collect(build(name), name, [sample()], "an input"))
    # Eleven elements of the page's own: the facts, the worker, nine scripts and no other.
    assert page.count("<script") == page.count("</script>") == 11
    assert "<!--" not in page


def test_the_same_facts_give_the_same_page(facts: Facts) -> None:
    assert render(facts) == render(facts)
