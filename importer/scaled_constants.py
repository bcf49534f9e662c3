"""Constant codes that a model dequantizes by Cast, Sub and Mul instead of a DequantizeLinear.

Such nodes are computed at import, since parameters may be made so as well. What comes out of them
is also remembered as what it is: codes with a scale, moved around perhaps. Where an operator that
stays in the graph reads it, a dequantize of the codes takes the place of the constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from intonnx.ir.graph import Source
from intonnx.ir.quantization import dequantize_array
from intonnx.ir.types import Array, DType, QuantParams, TensorType

from .parameters import broadcast_params

if TYPE_CHECKING:
    from .node_view import NodeView

_EXPRESSED = (DType.F32, DType.F16, DType.BF16)
_MOVERS = {"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}


@dataclass(frozen=True)
class _Cast:
    """Codes that were cast, less zero points."""

    codes: str
    zero: Array
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Scaled:
    """The real values of constant codes.

    Attributes:
        codes: the name of the codes.
        params: their parameters.
        sources: the nodes that dequantize them.
    """

    codes: str
    params: QuantParams
    sources: tuple[Source, ...]


class ScaledConstants:
    """What is known of the constants that nodes of a model were computed to."""

    def __init__(self) -> None:
        self._casts: dict[str, _Cast] = {}
        self._scaled: dict[str, Scaled | NodeView] = {}

    def get(self, name: str) -> Scaled | NodeView | None:
        """Codes with their parameters, a node that moves such, or None for any other constant."""
        return self._scaled.get(name)

    def note(
        self, view: NodeView, constants: Mapping[str, Array], types: Mapping[str, TensorType]
    ) -> None:
        """Learn what a node of ai.onnx with one result, just computed, stands for."""
        node, result = view.proto, view.output()
        if node.domain not in ("", "ai.onnx") or len(node.output) != 1 or not view.has(0):
            return
        first = view.input(0)
        if node.op_type == "Cast":
            self._note_cast(view, first, types)
        elif node.op_type == "Sub" and first in self._casts:
            zero = _whole(constants[view.input(1)])
            if zero is not None:
                cast = self._casts[first]
                sources = (*cast.sources, view.source)
                self._casts[result] = replace(cast, zero=cast.zero + zero, sources=sources)
        elif node.op_type == "Mul":
            for name, scale in ((first, view.input(1)), (view.input(1), first)):
                if name in self._casts and result not in self._scaled:
                    self._note_product(view, name, constants, types, constants[scale])
        elif node.op_type in _MOVERS and first in self._scaled:
            self._scaled[result] = view

    def _note_cast(self, view: NodeView, codes: str, types: Mapping[str, TensorType]) -> None:
        before, after = types[codes].dtype, types[view.output()].dtype
        if codes in self._casts:
            cast = self._casts[codes]
            if after in _EXPRESSED:
                self._casts[view.output()] = replace(cast, sources=(*cast.sources, view.source))
        elif (
            before.is_integer and before.bits <= 8 and after in (*_EXPRESSED, DType.I16, DType.I32)
        ):
            self._casts[view.output()] = _Cast(codes, np.zeros((), np.int64), (view.source,))

    def _note_product(
        self,
        view: NodeView,
        name: str,
        constants: Mapping[str, Array],
        types: Mapping[str, TensorType],
        scale: Array,
    ) -> None:
        cast, result = self._casts[name], types[view.output()]
        codes, storage = constants[cast.codes], types[cast.codes].dtype
        if result.dtype not in _EXPRESSED or codes.size <= 1:
            return
        params = broadcast_params(
            scale.astype(np.float32), cast.zero, storage, codes.shape, result.dtype
        )
        if params is None or codes.shape != constants[view.output()].shape:
            return
        # The same to the last bit, or it is something else.
        same = np.array_equal(dequantize_array(codes, params), constants[view.output()])
        if same:
            sources = (*cast.sources, view.source)
            self._scaled[view.output()] = Scaled(cast.codes, params, sources)


def _whole(array: Array) -> Array | None:
    """Whole numbers of at most 16 bits, or None for any other array."""
    if array.dtype.kind not in "fiu" or not np.all(np.abs(array.astype(np.float64)) <= 1 << 16):
        return None
    rounded = np.rint(array.astype(np.float64))
    return rounded.astype(np.int64) if np.array_equal(rounded, array.astype(np.float64)) else None
