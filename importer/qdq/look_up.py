"""A look-up of codes in a constant table, written as Gather or GatherElements of integers."""

from __future__ import annotations

from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Node, Source
from intonnx.ir.ops.gather import Gather
from intonnx.ir.ops.gather_elements import GatherElements
from intonnx.ir.ops.lut import Lut
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.reshape import Reshape
from intonnx.ir.rewriter import Rewriter
from intonnx.ir.types import QuantParams, TensorType, quantized

from .boundary import made_by
from .typed_sums import readers_agree


def looked_up(rewriter: Rewriter, entries: str, params: QuantParams) -> bool:
    """Let the plain codes `entries`, which all readers give these parameters, be a `qnn.lut`.

    They are Gather(table, Cast(codes)), or Reshape(GatherElements(table, Reshape(Cast(codes)))), of
    a table with an entry for every bit pattern of the codes. Returns whether it was done.
    """
    if rewriter.is_output(entries) or not readers_agree(rewriter, entries, params):
        return False
    sources: list[Source] = []
    gather = _before_reshape(rewriter, entries, sources)
    if gather is None or not isinstance(gather.op, Gather | GatherElements) or gather.op.axis != 0:
        return False
    table, index = gather.operands
    cast = _before_reshape(rewriter, index, sources)
    if cast is None or made_by(rewriter, cast.results[0], "Cast") is None:
        return False
    if table not in rewriter.constants:
        return False
    codes = cast.operands[0]
    op, kind, wanted = Lut(out=params), rewriter.types[codes], rewriter.types[entries]
    try:
        op.infer([kind, rewriter.types[table]])
    except TypeFailure:
        return False
    node_id = rewriter.producer_id(entries)
    assert node_id is not None
    own = _is_own_shape(rewriter, rewriter.node(node_id), cast)
    if not own and not _same_shape(kind, wanted):
        return False
    sources += [*gather.sources, *cast.sources, *rewriter.node(node_id).sources]
    rewriter.remove(node_id)
    rewriter.types[entries] = quantized(params, wanted.shape)
    rewriter.emit(op, [codes, table], [entries], sources=sources, before=node_id)
    return True


def _before_reshape(rewriter: Rewriter, name: str, sources: list[Source]) -> Node | None:
    """What makes a value, or, where it is reshaped, what makes the value before that."""
    node = rewriter.producer(name)
    if node is None or not (
        isinstance(node.op, Reshape) or made_by(rewriter, name, "Reshape") is not None
    ):
        return node
    sources.extend(node.sources)
    return rewriter.producer(node.operands[0])


def _is_own_shape(rewriter: Rewriter, reshape: Node, cast: Node) -> bool:
    """Whether a Reshape is to what Shape says of the index, or of the codes themselves."""
    shape = made_by(rewriter, [*reshape.operands, ""][1], "Shape")
    if shape is None or not isinstance(shape.op, OnnxOp) or shape.op.attributes:
        return False
    return shape.operands[0] in (*cast.results, *cast.operands)


def _same_shape(codes: TensorType, entries: TensorType) -> bool:
    """Whether both have one shape; at most one size may be unknown, as both have as many cells."""
    if codes.shape is None or entries.shape is None or codes.rank != entries.rank:
        return False
    differ = [pair for pair in zip(codes.shape, entries.shape, strict=True) if pair[0] != pair[1]]
    return len(differ) <= 1 and all(isinstance(size, str) for pair in differ for size in pair)
