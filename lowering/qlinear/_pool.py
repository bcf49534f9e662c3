"""What the emitters of pools share."""

from __future__ import annotations

from typing import Any

from intonnx.ir.graph import Node
from intonnx.ir.ops._pool import Pool
from intonnx.ir.types import Dim, static_shape

from .emitter import Emitter


def attributes(op: Pool, sizes: tuple[Dim, ...]) -> dict[str, Any]:
    """The attributes of an ONNX pool; auto_pad only where the sizes are not known."""
    known = static_shape(sizes)
    explicit = known is not None or op.auto_pad == "NOTSET"
    pads, ceil_mode = op.pads, op.ceil_mode
    if known is not None:
        pads, ceil_mode = _exact_pads(op, known)
    return {
        "kernel_shape": op.kernel,
        "strides": op.strides,
        "dilations": op.dilations if max(op.dilations) > 1 else None,
        "pads": pads if explicit else None,
        "auto_pad": None if explicit else op.auto_pad,
        "ceil_mode": int(ceil_mode) or None,
    }


def _exact_pads(op: Pool, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Pads, and whether `ceil_mode` is needed with them.

    Shape inference of onnx, which onnxruntime plans its memory by, counts windows that start
    beyond the data; without `ceil_mode` it does not. Cells of padding count as little as those
    beyond it, unless the operator counts the padding.
    """
    pads, overhang = op.padding(sizes), op.overhang(sizes)
    n = len(sizes)
    wider = (*pads[:n], *(end + more for end, more in zip(pads[n:], overhang, strict=True)))
    counted = any(overhang) and getattr(op, "count_include_pad", False)
    if counted or any(end >= k for end, k in zip(wider[n:], op.kernel, strict=True)):
        return pads, op.ceil_mode
    return wider, False


def between(
    node: Node,
    out: Emitter,
    op_type: str,
    *,
    channels_last: bool,
    fusible: bool,
    **attributes: Any,
) -> None:
    """DQ -> op -> Q, with the channels moved to the front and back where they are last.

    onnxruntime makes a QLinear operator of this even where that has no kernel (dilations: the model
    does not load; multipliers out of range: it does not run) or means something else (cells beyond
    the padding). Where it must not, `fusible` is False and Q is kept apart.
    """
    operand, result = node.operands[0], node.results[0]
    rank = len(out.type(operand).shape or ())
    real = out.real(operand)
    if channels_last:
        perm = [0, rank - 1, *range(1, rank - 1)]
        real = out.value("Transpose", [real], f"{operand}.channels_first", perm=perm)
    real = out.value(op_type, [real], f"{result}.unquantized", **attributes)
    if channels_last:
        perm = [0, *range(2, rank), 1]
        real = out.value("Transpose", [real], f"{result}.channels_last", perm=perm)
    if not fusible:
        real = out.apart(real, result)
    out.quantize(real, out.params(result), result)
