"""GridSample between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.grid_sample import GridSample

from .emitter import Emitter
from .registry import emitters

_RENAMED_SINCE = 20
_OLD_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@emitters.register(GridSample)
def grid_sample(op: GridSample, node: Node, out: Emitter) -> None:
    """No runtime samples integers. The modes have other names before opset 20."""
    x, grid = node.operands
    places = out.operand(grid) if out.type(grid).quant is None else out.real(grid)
    old = out.opset < _RENAMED_SINCE
    out.between(
        node,
        "GridSample",
        [places],
        operands=[x],
        mode=_OLD_MODES.get(op.mode, op.mode) if old else op.mode,
        padding_mode=op.padding,
        align_corners=int(op.align_corners),
    )
