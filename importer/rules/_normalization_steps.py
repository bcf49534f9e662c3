"""A normalization over the last axes, written as means, differences and a square root.

Exporters write LayerNormalization so before opset 17, and RMSNormalization before opset 23.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.ir.graph import Refusal, Source
from intonnx.ir.ops.layer_norm import LayerNorm, RmsNorm
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.rewriter import Rewriter
from intonnx.ir.types import Array, DType, QuantParams, plain

from ._integers import integers
from ._results import produced

_AXES_SINCE = 18


def normalized_in_steps(boundary: Boundary) -> bool:
    """Let the last step of a normalization of codes, before its quantizers, be the whole of it.

    The steps are (x - mean) / sqrt(mean(square) + epsilon), then a product with a constant and,
    after that, a sum with one; a root mean square normalization has x itself for the difference.
    Returns whether it was done.
    """
    if not boundary.quantizers() or boundary.read_as_float():
        return False
    steps = _Steps(boundary.rewriter)
    found = steps.match(boundary)
    if found is None:
        return False
    operands = [found.x.name, *steps.factors(boundary, found)]

    def make(out: QuantParams) -> LayerNorm | RmsNorm:
        kind = LayerNorm if found.centred else RmsNorm
        return kind(axis=found.axis, epsilon=found.epsilon, out=out)

    return produced(boundary, make, operands, sources=steps.sources) is None


@dataclass(frozen=True)
class _Found:
    """A normalization: its codes, first axis, epsilon, and constants or None."""

    x: Quantized
    axis: int
    epsilon: float
    centred: bool
    scale: Array | None
    bias: Array | None


@dataclass
class _Steps:
    """The walk from the last step back to the codes."""

    rewriter: Rewriter
    sources: list[Source] = field(default_factory=list[Source])

    def match(self, last: Boundary) -> _Found | None:
        """The normalization that ends here, if it is one."""
        name = last.node.results[0]
        name, bias = self._constant_step(name, "Add")
        name, scale = self._constant_step(name, "Mul")
        if scale is None and bias is not None:
            return None
        quotient = self._quotient(name)
        if quotient is None:
            return None
        difference, variance = quotient
        parts = self._epsilon(variance)
        if parts is None:
            return None
        mean, epsilon = parts
        square, axes = self._mean(mean)
        if axes is None or self._root_of_square(square) != difference:
            return None
        return self._centred(difference, axes, epsilon, scale, bias)

    def _centred(
        self, difference: str, axes: tuple[int, ...], epsilon: float,
        scale: Array | None, bias: Array | None,
    ) -> _Found | None:  # fmt: skip
        subtract = self._step(difference, "Sub")
        if subtract is None:
            reader = self._reader(difference)
            x = reader.needs_activation(reader.node.operands.index(difference))
        else:
            mean, own_axes = self._mean(subtract.name(1))
            if mean != subtract.name(0) or own_axes != axes:
                return None
            x = subtract.needs_activation(0)
        if isinstance(x, Refusal) or not x.type.rank:
            return None
        rank, places = x.type.rank, sorted(axis % x.type.rank for axis in axes)
        if places != list(range(places[0], rank)) or (subtract is None and bias is not None):
            return None
        return _Found(x, places[0] - rank, epsilon, subtract is not None, scale, bias)

    def factors(self, boundary: Boundary, found: _Found) -> list[str]:
        """The names of scale and bias as constants; a scale of one where there is none."""
        scale = np.ones((), np.float32) if found.scale is None else found.scale
        arrays = [scale] if found.bias is None else [scale, found.bias]
        result = boundary.node.results[0]
        return [
            boundary.constant_codes(f"{result}.{what}", array, plain(DType.F32, array.shape))
            for what, array in zip(("scale", "bias"), arrays, strict=False)
        ]

    def _step(self, name: str, *op_types: str) -> Boundary | None:
        """The float32 operator of one of these types that makes a value; its sources are kept."""
        node_id = self.rewriter.producer_id(name)
        if node_id is None:
            return None
        node = self.rewriter.node(node_id)
        if not isinstance(node.op, OnnxOp) or node.op.domain or node.op.op_type not in op_types:
            return None
        if self.rewriter.types[name].dtype is not DType.F32 or not all(node.operands):
            return None
        self.sources.extend(source for source in node.sources if source not in self.sources)
        return Boundary(self.rewriter, node_id)

    def _reader(self, name: str) -> Boundary:
        return Boundary(self.rewriter, self.rewriter.user_ids(name)[0])

    def _constant_step(self, name: str, op_type: str) -> tuple[str, Array | None]:
        """The operand beside a constant array of a sum or product, and the constant."""
        before = list(self.sources)
        step = self._step(name, op_type)
        if step is None:
            return name, None
        for index in (0, 1):
            constant = step.constant(index)
            if constant is not None and constant.dtype == np.float32:
                return step.name(1 - index), constant
        self.sources = before
        return name, None

    def _quotient(self, name: str) -> tuple[str, str] | None:
        """The difference and the variance whose square root it is divided by."""
        step = self._step(name, "Div", "Mul")
        if step is None:
            return None
        for index in (1,) if step.op.op_type == "Div" else (0, 1):
            root = step.name(index)
            if step.op.op_type == "Mul":
                inverse = self._step(root, "Reciprocal", "Div")
                if inverse is None or not self._is_inverse(inverse):
                    continue
                root = inverse.node.operands[-1]
            square_root = self._step(root, "Sqrt")
            if square_root is not None:
                return step.name(1 - index), square_root.name(0)
        return None

    def _is_inverse(self, step: Boundary) -> bool:
        return step.op.op_type == "Reciprocal" or _scalar(step.constant(0)) == 1.0

    def _epsilon(self, name: str) -> tuple[str, float] | None:
        """The variance beside it, and epsilon."""
        step = self._step(name, "Add")
        if step is None:
            return None
        for index in (0, 1):
            value = _scalar(step.constant(index))
            if value is not None and 0 < value < 1:
                return step.name(1 - index), value
        return None

    def _mean(self, name: str) -> tuple[str, tuple[int, ...] | None]:
        """What the mean is of, and along which axes, that are kept."""
        step = self._step(name, "ReduceMean")
        if step is None or not step.attribute("keepdims", 1):
            return name, None
        axes = integers(step, 1, "axes", "axes", since=_AXES_SINCE)
        if isinstance(axes, Refusal) or not axes:
            return name, None
        return step.name(0), axes

    def _root_of_square(self, name: str) -> str | None:
        """What is squared."""
        step = self._step(name, "Pow", "Mul")
        if step is None:
            return None
        if step.op.op_type == "Mul":
            return step.name(0) if step.name(0) == step.name(1) else None
        return step.name(0) if _scalar(step.constant(1)) == 2.0 else None


def _scalar(value: Array | None) -> float | None:
    return float(value.reshape(())) if value is not None and value.size == 1 else None
