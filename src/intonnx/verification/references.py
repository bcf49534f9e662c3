"""The executions that ours is compared with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import onnx

from intonnx.ir.errors import IntonnxError, RunFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Dequantize, Quantize, Requantize
from intonnx.ir.storage import is_signed, signed_codes
from intonnx.ir.types import Array, DType
from intonnx.lowering.executable import compile_graph
from intonnx.lowering.export import to_onnx

from . import runtime

Reference = Literal["literal", "original", "original optimized", "export", "optimized"]
Against = Literal["qdq", "onnxruntime"]
Inputs = Mapping[str, Array]

_MULTIPLIERS = frozenset({
    "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul",
    "com.microsoft.DynamicQuantizeMatMul", "com.microsoft.MatMulIntegerToFloat",
    "com.microsoft.QGemm",
})  # fmt: skip
_LACKING = "NOT_IMPLEMENTED"
"""What onnxruntime says of an operator that it has no kernel for."""
_FLOAT_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


@dataclass(frozen=True)
class Plan:
    """A reference: how to run it, and what may be asked of it.

    Attributes:
        reference: which one.
        run: gives values by name, as many as the reference has; None when it cannot run.
        skipped: why it is not run, or "".
        error: why it cannot run although it must, or "".
        note: what the reader should know, or "".
        exact: values in which no bit may differ.
        unjudged: values that the reference may have wrong.
        outputs_only: whether it has no inner values.
        equal_outputs: whether no bit may differ in the outputs either.
    """

    reference: Reference
    run: Callable[[Inputs], Mapping[str, Array]] | None = None
    skipped: str = ""
    error: str = ""
    note: str = ""
    exact: frozenset[str] = frozenset()
    unjudged: frozenset[str] = frozenset()
    outputs_only: bool = False
    equal_outputs: bool = False


def plans(
    graph: Graph, original: onnx.ModelProto | None, against: Collection[Against] = ()
) -> list[Plan]:
    """The references asked for, all where none is; those that cannot be run say why.

    Raises RunFailure when onnxruntime is asked for and not installed.
    """
    found: list[Plan] = []
    if not against or "qdq" in against:
        found.append(Plan("literal", compile_graph(graph, "qdq").trace))
    if against and "onnxruntime" not in against:
        return found
    if runtime.is_installed():
        theirs, exported = _original(graph, original), _exported(graph)
        if _LACKING in theirs[0].skipped and _LACKING in exported[0].error:
            # Types that onnxruntime has no kernels for: it runs neither.
            exported = [Plan("export", skipped=exported[0].error)]
        return [*found, *theirs, *exported]
    absent = "onnxruntime is not installed"
    if against:
        raise RunFailure(f"{absent}: pip install 'intonnx[ort]'")
    return [*found, Plan("original", skipped=absent), Plan("export", skipped=absent)]


def _original(graph: Graph, original: onnx.ModelProto | None) -> list[Plan]:
    if original is None:
        return [Plan("original", skipped="a saved graph has no ONNX model beside it")]
    try:
        session = runtime.Session(original, also=_comparable(graph))
        optimized = runtime.Session(original, optimized=True)
    except IntonnxError as error:
        return [Plan("original", skipped=error.cause)]
    unjudged = _saturating(graph)
    note = (
        f"{len(unjudged)} values are not judged: on this CPU, which lacks VNNI, onnxruntime's "
        "u8 x s8 kernels saturate"
    )
    if rounded := _rounded_activations(graph, original):
        unjudged |= rounded
        note = (
            f"{len(rounded)} values are not judged: with accuracy_level 4 onnxruntime's "
            "MatMulNBits rounds its float operand to 8 bits"
        )
    plan = Plan("original", session.run, unjudged=unjudged, note=note if unjudged else "")
    return [plan, Plan("original optimized", optimized.run, outputs_only=True)]


def _comparable(graph: Graph) -> list[str]:
    """The values that onnxruntime can hand out: numpy has types for them."""
    return [
        name
        for name, kind in graph.types.items()
        if kind.dtype.numpy.isbuiltin == 1 and not (kind.is_integer and kind.dtype.bits < 8)
    ]


def _rounded_activations(graph: Graph, original: onnx.ModelProto) -> frozenset[str]:
    """The results of products with weights in blocks that the runtime may compute in int8."""
    names = {
        node.name
        for node in original.graph.node
        if node.op_type == "MatMulNBits"
        if any(a.name == "accuracy_level" and a.i == 4 for a in node.attribute)
    }
    hit = [node for node in graph.nodes if any(source.name in names for source in node.sources)]
    return frozenset(result for node in hit for result in node.results if result)


def _saturating(graph: Graph) -> frozenset[str]:
    """The results of the model's integer operators that onnxruntime gets wrong on this CPU."""
    mixed = [node for node in graph.nodes if _mixes_types(graph, node)]
    if not mixed or not runtime.saturates():
        return frozenset()
    names = {source.name for node in mixed for source in node.sources}
    hit = [node for node in graph.nodes if any(source.name in names for source in node.sources)]
    return frozenset(result for node in hit for result in node.results if result)


def _mixes_types(graph: Graph, node: Node) -> bool:
    """Whether it multiplies u8 by s8 and was an integer operator in the model already."""
    kinds = [kind.dtype for kind in graph.operand_types(node)[:2] if kind is not None]
    eight_bit = {kind for kind in kinds if kind in (DType.U8, DType.I8)}
    return len(eight_bit) == 2 and any(s.op in _MULTIPLIERS for s in node.sources)


def _exported(graph: Graph) -> list[Plan]:
    try:
        model = to_onnx(graph)
        inner = runtime.Session(model, also=_comparable(graph))
        optimized = runtime.Session(model, optimized=True)
    except IntonnxError as error:
        return [Plan("export", error=str(error))]
    between = _between(graph, model)
    note = f"{len(between)} values have no QLinear kernel and are written as DQ -> op -> Q"
    equal = not between and not any(map(is_float_op, graph.nodes))
    export = Plan(
        "export",
        lambda inputs: _as_typed(graph, inner.run(inputs)),
        note=note if between else "",
        exact=frozenset(graph.producers) - between,
        equal_outputs=equal,
    )
    return [export, Plan("optimized", optimized.run, outputs_only=True)]


def _as_typed(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    """The values with s8 codes where the graph has them: an export for x86 has u8 ones."""
    return {
        name: signed_codes(array) if array.dtype == np.uint8 and is_signed(kind) else array
        for name, array in values.items()
        for kind in [graph.types.get(name)]
    }


def _between(graph: Graph, model: onnx.ModelProto) -> frozenset[str]:
    """The values that the export computes in the float arithmetic of an ONNX operator."""
    makers = {name: node for node in model.graph.node for name in node.output}
    return frozenset(
        name
        for name, node in graph.producers.items()
        if name in makers and node.op.name.startswith("qnn.")
        if _is_between(node, makers[name], makers)
    )


def _is_between(node: Node, maker: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto]) -> bool:
    if isinstance(node.op, Dequantize):
        return maker.op_type in _FLOAT_PRODUCTS
    while maker.op_type in ("Clip", "Cast") and maker.input[0] in makers:
        maker = makers[maker.input[0]]  # the limits of a narrower range
    if maker.op_type != "QuantizeLinear" or isinstance(node.op, Quantize):
        return False
    inner = makers.get(maker.input[0])
    # A requantize of codes is DQ -> Q, one of an accumulator a product by its multiplier -> Q.
    exact = isinstance(node.op, Requantize) and inner is not None
    return not (exact and inner is not None and inner.op_type in ("DequantizeLinear", "Mul"))


def is_float_op(node: Node) -> bool:
    """Whether the IR keeps the node as the ONNX operator that it is."""
    return isinstance(node.op, OnnxOp)
