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
    return {
        "kernel_shape": op.kernel,
        "strides": op.strides,
        "dilations": op.dilations if max(op.dilations) > 1 else None,
        "pads": (op.pads if known is None else op.padding(known)) if explicit else None,
        "auto_pad": None if explicit else op.auto_pad,
        "ceil_mode": int(op.ceil_mode) or None,
    }


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
    the padding). Where it must not, `fusible` is False and a Concat of one tensor keeps Q away.
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
    if out.runtime == "onnxruntime" and not fusible:
        real = out.value("Concat", [real], f"{result}.kept", axis=0)
    out.quantize(real, out.params(result), result)
