"""What a report shows, as records; they are embedded in the page as JSON."""

from __future__ import annotations

from intonnx.ir.coverage import NodeCoverage, State
from intonnx.ir.ranges import AccumulatorRange
from intonnx.ir.types import Record

BINS = 64
"""The most bars of a histogram."""


class Histogram(Record):
    """How often what values occurred.

    Attributes:
        low: the left edge of the first bar.
        width: the width of a bar.
        counts: elements in each bar.
        ends: the shares of elements at the lowest and the highest code, 0 to 1; None for what does
            not saturate: floats and accumulators.
    """

    low: float
    width: float
    counts: tuple[int, ...]
    ends: tuple[float, float] | None = None


class Value(Record):
    """A value of the graph.

    Attributes:
        name, type: as the text form has them.
        role: "input", "constant", "output" or "value".
        scales: the smallest and the largest scale, or None when it is not quantized.
        histogram: of its codes, or of its elements when it is not quantized; None for what has no
            numbers or was not computed.
    """

    name: str
    type: str
    role: str
    scales: tuple[float, float] | None
    histogram: Histogram | None


class Error(Record):
    """How one operator differs from the literal QDQ meaning when it is fed the same operands.

    Attributes:
        value: the result that was compared.
        unit: of `largest`: "quanta", or "relative" to the largest magnitude.
        largest: the largest difference.
        share: the share of elements that differ, 0 to 1.
    """

    value: str
    unit: str
    largest: float
    share: float


class Operator(Record):
    """An operator of the IR.

    Attributes:
        title: such as `qnn.conv2d`.
        name: the node of the model whose work it does.
        state, code, detail, remedy: whether it is integer, and if not, why and what to change.
        operands, results: indices of values; None for an absent operand.
        attributes: as the text form prints them.
        multiply_accumulates: products for one item of a symbolic batch.
        error: None where it was not compared.
        range: of its accumulator, None where it has none.
    """

    title: str
    name: str
    state: State
    code: str
    detail: str
    remedy: str
    operands: tuple[int | None, ...]
    results: tuple[int, ...]
    attributes: str
    multiply_accumulates: int
    error: Error | None
    range: AccumulatorRange | None


class Facts(Record):
    """All that a report shows.

    Attributes:
        file, producer, opsets, version: where the model comes from, and what made the report.
        inputs_note: what inputs the histograms and errors come from.
        node_share, product_share: integer nodes and multiply-accumulates among all, 0 to 1.
        counts: nodes of the model by state.
        operators, values: the graph.
        nodes: every node of the model, as `coverage` has it.
    """

    file: str
    producer: str
    opsets: dict[str, int]
    version: str
    inputs_note: str
    node_share: float
    product_share: float
    counts: dict[State, int]
    operators: tuple[Operator, ...]
    values: tuple[Value, ...]
    nodes: tuple[NodeCoverage, ...]
