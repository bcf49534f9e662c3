"""Q -> Clip: a quantizer to fewer codes than its storage type has."""

from __future__ import annotations

from typing import Any

from intonnx.ir.ops.lut import Lut
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.types import QuantParams

from .codes import keep_plain_readers


def narrow_quantizers(rewriter: Rewriter) -> None:
    """Let what makes codes limit them, where a Clip of these integers is all that reads them.

    To saturate to the type and then to a range is to saturate to the range.
    """
    for node_id in rewriter.node_ids():
        op = rewriter.node(node_id).op if node_id in rewriter else None
        if isinstance(op, OnnxOp) and op.title == "onnx.Clip" and op.version >= 12:
            _narrow(rewriter, node_id)


def _narrow(rewriter: Rewriter, clip_id: NodeId) -> None:
    clip = rewriter.node(clip_id)
    codes, result = clip.operands[0], clip.results[0]
    maker_id, limits = rewriter.producer_id(codes), _limits(rewriter, clip.operands[1:])
    if maker_id is None or limits is None or rewriter.is_output(codes):
        return
    maker = rewriter.node(maker_id)
    out: Any = getattr(maker.op, "out", None)
    alone = len(rewriter.user_ids(codes)) == 1 and len(maker.results) == 1
    if not alone or not isinstance(out, QuantParams) or isinstance(maker.op, Lut | StorageCast):
        return
    params = out.limited(*limits)
    if out.is_narrow or not out.covers(params):
        return
    rewriter.remove(clip_id)
    rewriter.remove(maker_id)
    rewriter.emit(
        maker.op.model_copy(update={"out": params}),
        maker.operands,
        [result],
        sources=[*maker.sources, *clip.sources],
        before=clip_id,
    )
    keep_plain_readers(rewriter, result)
    _drop_casts(rewriter, result, params)


def _limits(rewriter: Rewriter, bounds: tuple[str, ...]) -> tuple[int | None, int | None] | None:
    """The bounds of a Clip of integers, None for one that is absent; None unless all are known."""
    arrays = [rewriter.constants.get(name) if name else None for name in bounds]
    known = all(
        not name or (array is not None and array.size == 1 and array.dtype.kind in "iu")
        for array, name in zip(arrays, bounds, strict=True)
    )
    if not known:
        return None
    low, high = [
        None if array is None else int(array.reshape(())[()]) for array in [*arrays, None, None][:2]
    ]
    return low, high


def _drop_casts(rewriter: Rewriter, codes: str, params: QuantParams) -> None:
    """Storage casts to the parameters that the codes have now do nothing."""
    for node_id in rewriter.user_ids(codes):
        node = rewriter.node(node_id)
        if isinstance(node.op, StorageCast) and node.op.out == params:
            (result,) = node.results
            if not rewriter.is_output(result):
                rewriter.remove(node_id)
                rewriter.replace_uses(result, codes)
