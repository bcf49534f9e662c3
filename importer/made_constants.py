"""Values that nodes which stay in the graph make from constants alone, computed when asked for.

A dequantize of constants stays, since an integer operator may take its codes. Where a scale, zero
point or bound comes out of it, perhaps after some arithmetic, it is a constant all the same: the
low power blocks of AIMET and other double quantization have scales that are quantized themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from intonnx.ir.op import element_count
from intonnx.ir.types import Array, TensorType, static_shape

from .fold import fold

if TYPE_CHECKING:
    from .node_view import NodeView

_LARGEST = 1 << 20
"""Elements: scales have fewer, and weights are not to be computed twice."""
_DEEPEST = 16
"""Nodes between constants and a parameter."""


class MadeConstants:
    """The nodes of a model by their results, and what they have been computed to."""

    def __init__(
        self,
        constants: Mapping[str, Array],
        types: Mapping[str, TensorType],
        opsets: Mapping[str, int],
    ) -> None:
        self._constants = constants
        self._types = types
        self._opsets = opsets
        self._views: dict[str, NodeView] = {}
        self._known: dict[str, Array | None] = {}

    def note(self, view: NodeView) -> None:
        """Remember a node for when one of its results is asked for."""
        self._views.update(dict.fromkeys(filter(None, view.proto.output), view))

    def get(self, name: str, depth: int = 0) -> Array | None:
        """The value of a constant, or of what nodes make from constants; None for any other.

        What a caller can override is no constant.
        """
        if name in self._constants:
            return self._constants[name]
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._computed(name, depth)
        return self._known[name]

    def _computed(self, name: str, depth: int) -> Array | None:
        view, kind = self._views.get(name), self._types.get(name)
        if view is None or kind is None or depth >= _DEEPEST:
            return None
        if static_shape(kind.shape) is None or element_count(kind.shape) > _LARGEST:
            return None
        inputs: dict[str, Array] = {}
        for operand in filter(None, view.proto.input):
            value = self.get(operand, depth + 1)
            if value is None:
                return None
            inputs[operand] = value
        results = fold(view, inputs, self._types, self._opsets)
        if results is None:
            return None
        return results[list(view.proto.output).index(name)]
