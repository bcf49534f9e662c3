"""Step two: rewrite float operators between quantizers into operators on codes.

First a quantizer takes over a Clip of its codes, and quantizers move up through operators that
commute with them; then every float operator, in topological order, is offered to its rule; last,
what is left of DQ -> Q becomes a requantize.
"""

from __future__ import annotations

from dataclasses import replace

from intonnx.importer.malformed import reading
from intonnx.importer.registry import codes_rule, quantize_rule
from intonnx.ir.graph import Graph, Node, Refusal, Source
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import NodeId, Rewriter

from .boundary import Boundary, is_dequantized, requantize
from .codes import lift_quantizers, on_codes
from .look_up import looked_up
from .moved import moved_as
from .narrow import narrow_quantizers
from .typed_sums import typed_product

OLDEST_OPSET = 10

_SIZES = ("Shape", "Size")
"""Operators that read the sizes of a tensor, and none of its elements."""


def collect(graph: Graph) -> Graph:
    """The graph with every float operator that can be integer made so, and a reason on the rest.

    Rules read operators as opset 10 and later write them, which brought the quantizers: older
    models stay as they are.
    """
    if graph.metadata.get("opsets", {}).get("", OLDEST_OPSET) < OLDEST_OPSET:
        return graph
    rewriter = Rewriter(_live(graph))
    narrow_quantizers(rewriter)
    lift_quantizers(rewriter)
    for node_id in rewriter.node_ids():
        if node_id in rewriter:
            _visit(rewriter, node_id)
    _drop_casts(rewriter)
    return rewriter.finish()


def _live(graph: Graph) -> Graph:
    """The graph without nodes that no output needs: they are no readers of what others make."""
    needed = set(graph.outputs)
    live: list[Node] = []
    dead: list[Source] = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.results):
            dead.extend(reversed(node.sources))
        else:
            needed.update(node.operands)
            live.append(node)
    folded = (*graph.folded, *reversed(dead))
    return replace(graph, nodes=tuple(reversed(live)), folded=folded) if dead else graph


def _visit(rewriter: Rewriter, node_id: NodeId) -> None:
    node = rewriter.node(node_id)
    if isinstance(node.op, Quantize):
        _shorten(rewriter, node_id)
    elif isinstance(node.op, StorageCast):
        _drop_cast(rewriter, node_id, node.op)
    elif isinstance(node.op, OnnxOp) and node.op.domain == "" and node.op.op_type in _SIZES:
        _read_codes(rewriter, node_id)
    elif isinstance(node.op, OnnxOp) and node.op.domain == "" and node.refusal is None:
        with reading(node.label):
            refusal = _integer_form(rewriter, node_id)
        if refusal is not None:
            rewriter.update(node_id, replace(rewriter.node(node_id), refusal=refusal))


def _integer_form(rewriter: Rewriter, node_id: NodeId) -> Refusal | None:
    boundary = Boundary(rewriter, node_id)
    refusal: Refusal | None = None
    if (commuting := codes_rule(boundary.op.op_type)) is not None:
        refusal = on_codes(boundary, commuting)
        if refusal is None:
            return None
    if (rule := quantize_rule(boundary.op.op_type)) is not None:
        return rule(boundary)
    return refusal


def _drop_casts(rewriter: Rewriter) -> None:
    """Drop casts that have come in between, and can be dropped now that all readers are known."""
    for node_id in rewriter.node_ids():
        op = rewriter.node(node_id).op if node_id in rewriter else None
        if isinstance(op, StorageCast):
            _drop_cast(rewriter, node_id, op)


def _drop_cast(rewriter: Rewriter, node_id: NodeId, op: StorageCast) -> None:
    """A cast to the parameters that the codes got meanwhile, or can be given, does nothing."""
    if op.out is None:
        return
    (codes,) = rewriter.node(node_id).operands
    if rewriter.types[codes].quant is None:
        sources = rewriter.node(node_id).sources
        if not looked_up(rewriter, codes, op.out):
            moved_as(rewriter, codes, op.out)
        if (typed := typed_product(rewriter, node_id, codes, op.out, sources)) is not None:
            rewriter.replace_uses(codes, typed)
            codes = typed
    if rewriter.types[codes].quant == op.out:
        rewriter.bypass(node_id)


def _read_codes(rewriter: Rewriter, node_id: NodeId) -> None:
    """Codes have the sizes of their real values, which then need not be made."""
    node = rewriter.node(node_id)
    producer = rewriter.producer(node.operands[0])
    if producer is not None and is_dequantized(producer):
        rewriter.update(node_id, replace(node, operands=producer.operands[:1]))


def _shorten(rewriter: Rewriter, node_id: NodeId) -> None:
    """DQ -> Q is one requantize, or nothing when the parameters are equal."""
    node = rewriter.node(node_id)
    producer = rewriter.producer(node.operands[0])
    if producer is not None and is_dequantized(producer):
        requantize(rewriter, node_id, producer.operands[0])
        return
    assert isinstance(node.op, Quantize)
    for other_id in rewriter.user_ids(node.operands[0]):
        other = rewriter.node(other_id)
        same = isinstance(other.op, Quantize) and other.op.out == node.op.out
        if other_id != node_id and same and not rewriter.is_output(other.results[0]):
            rewriter.remove(other_id)
            rewriter.replace_uses(other.results[0], node.results[0])
