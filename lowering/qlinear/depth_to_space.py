"""DepthToSpace and SpaceToDepth on codes."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.depth_to_space import DepthToSpace, SpaceToDepth
from intonnx.ir.types import DType

from ._mover import move
from .emitter import Emitter
from .registry import emitters

_KERNELS = frozenset({DType.U8, DType.I8})
"""The only integers that the kernels of onnxruntime 1.32 move."""


@emitters.register(DepthToSpace)
def depth_to_space(op: DepthToSpace, node: Node, out: Emitter) -> None:
    """DepthToSpace."""
    move("DepthToSpace", node, out, kernels=_KERNELS, blocksize=op.blocksize, mode=op.mode)


@emitters.register(SpaceToDepth)
def space_to_depth(op: SpaceToDepth, node: Node, out: Emitter) -> None:
    """SpaceToDepth."""
    move("SpaceToDepth", node, out, kernels=_KERNELS, blocksize=op.blocksize)
