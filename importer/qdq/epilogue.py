"""What follows the sums of an integer operator: a Cast, products with scales, a bias.

Cast(x) * scale is what DequantizeLinear computes, to the last bit: the same conversion and the same
one product. So it is read as a dequantize, of codes whose scale is in their type where it is
constant, and with operands for scales that are known at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from intonnx.importer.parameters import broadcast_params
from intonnx.ir.broadcast import broadcasts_to
from intonnx.ir.graph import Node, Source
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.types import Array, DType, QuantParams, TensorType

from .boundary import Boundary, made_by
from .typed_sums import has_defined_sums, typed_product

_TINY = float(np.finfo(np.float32).tiny)


Wanted = Callable[[Rewriter, str], bool]
"""Whether a value may be the other operand of an operator that goes along."""


@dataclass(frozen=True)
class Integers:
    """Integers behind a Cast to float32.

    Attributes:
        name: the integers before their zero point is taken off.
        zero: what is subtracted from them before the Cast or after it; whole numbers.
        sources: the nodes in between, the Cast among them.
    """

    name: str
    zero: Array
    sources: tuple[Source, ...]


def dequantized_integers(boundary: Boundary) -> bool:
    """Let a Mul of cast integers by a scale become a dequantize; returns whether it was done.

    A second Mul by a scale goes along when nothing else reads the value between, and behind scales
    known at run time an Add of a bias too. With constant scales the codes get parameters, and
    quantizers that follow become requantizes.
    """
    for data, scale in ((0, 1), (1, 0)):
        found = _integers(boundary, data)
        if found is not None and _is_scale(boundary.rewriter, boundary.name(scale)):
            chain = _Chain(boundary, found, boundary.name(scale))
            if chain.dequantized():
                return True
    return False


def dequantized_by_value(boundary: Boundary) -> bool:
    """Let a DequantizeLinear of plain integers whose scale is known at run time be a dequantize.

    The zero point must be 0, and scales must lie along the last axis. Returns whether it was done.
    """
    rewriter, codes = boundary.rewriter, boundary.name(0)
    kind, scale = rewriter.types[codes], boundary.name(1)
    zero = boundary.constant(2) if boundary.has(2) else np.zeros(())
    if kind.quant is not None or not kind.is_integer or zero is None or np.any(zero):
        return False
    if kind.dtype.bits > 32 or not _is_scale(rewriter, scale) or kind.rank is None:
        return False
    axis = int(boundary.attribute("axis", 1))
    shape = rewriter.types[scale].shape or ()
    last = axis in (-1, kind.rank - 1) and not boundary.attribute("block_size", 0)
    if shape not in ((), (1,)) and not (last and len(shape) == 1):
        return False
    names, sources = _factors(rewriter, scale)
    if not all(broadcasts_to(rewriter.types[name].shape, kind.shape) for name in names):
        return False
    node = rewriter.remove(boundary.node_id)
    rewriter.emit(
        Dequantize(),
        [codes, *names],
        node.results,
        sources=[*node.sources, *sources],
        before=boundary.node_id,
    )
    return True


def float_bias(boundary: Boundary) -> bool:
    """Let an Add of float32 constants to the sums of an integer operator be the dequantize's bias.

    Their real values are defined to the last bit, so that none is rounded to a step of the sums
    unless all that follows is rounded to far larger ones. Returns whether it was done.
    """
    if boundary.quantizers() and not boundary.read_as_float():
        return False
    rewriter = boundary.rewriter
    for data, constant in ((0, 1), (1, 0)):
        value, bias = boundary.quantized(data), boundary.name(constant)
        if value is None or bias not in rewriter.constants or not value.is_accumulator:
            continue
        maker, real = rewriter.producer(value.name), boundary.name(data)
        alone = rewriter.user_ids(real) == [boundary.node_id] and not rewriter.is_output(real)
        if maker is None or not alone or not has_defined_sums(maker):
            continue
        kinds = [value.type, None, None, rewriter.types[bias]]
        if boundary.misfit(Dequantize(), kinds) is not None:
            continue
        node = rewriter.remove(boundary.node_id)
        operands = [value.name, "", "", bias]
        rewriter.emit(Dequantize(), operands, node.results, sources=node.sources,
                      before=boundary.node_id)  # fmt: skip
        return True
    return False


def _integers(boundary: Boundary, index: int) -> Integers | None:
    """The integers whose float32 values arrive at this input, zero points taken off."""
    rewriter, name = boundary.rewriter, boundary.name(index)
    zero, sources = np.zeros((), np.int64), list[Source]()
    if (less := made_by(rewriter, name, "Sub")) is not None and _whole(rewriter, less) is not None:
        zero, name = _plus(zero, _whole(rewriter, less)), less.operands[0]
        sources += less.sources
    cast = made_by(rewriter, name, "Cast")
    if cast is None or rewriter.types[name].dtype is not DType.F32:
        return None
    name = cast.operands[0]
    sources += cast.sources
    while (wide := _widened(rewriter, name)) is not None:
        name, offset = wide.operands[0], _whole(rewriter, wide)
        zero = zero if offset is None else _plus(zero, offset)
        sources += wide.sources
    kind = rewriter.types[name]
    if not kind.is_integer or kind.dtype.bits > 32 or kind.rank is None:
        return None
    exact = not np.any(zero) or kind.dtype.bits <= 16
    return Integers(name, zero, tuple(reversed(sources))) if exact else None


def _widened(rewriter: Rewriter, name: str) -> Node | None:
    """The Cast of 8-bit codes to more bits, or the Sub of a constant from such, that made them."""
    if rewriter.types[name].dtype not in (DType.I16, DType.I32):
        return None
    cast = made_by(rewriter, name, "Cast")
    if cast is not None:
        return cast if _is_narrow(rewriter.types[cast.operands[0]]) else None
    less = made_by(rewriter, name, "Sub")
    if less is None or _whole(rewriter, less) is None:
        return None
    inner = made_by(rewriter, less.operands[0], "Cast")
    return less if inner is not None and _is_narrow(rewriter.types[inner.operands[0]]) else None


def _is_narrow(kind: TensorType) -> bool:
    return kind.is_integer and kind.dtype.bits <= 8


def _whole(rewriter: Rewriter, node: Node) -> Array | None:
    """The constant that a Sub takes off, as whole numbers of an 8-bit or 16-bit type."""
    if len(node.operands) != 2:
        return None
    value = rewriter.constants.get(node.operands[1])
    if value is None or value.dtype.kind not in "fiu" or not np.all(np.abs(value) <= 1 << 16):
        return None
    rounded = np.rint(value)
    return rounded.astype(np.int64) if np.array_equal(rounded, value) else None


def _plus(zero: Array, more: Array | None) -> Array:
    assert more is not None
    return more if not np.any(zero) else np.asarray(zero + more)


def _is_scale(rewriter: Rewriter, name: str) -> bool:
    """Whether a value is float32 with a shape of one axis at most that is longer than 1."""
    kind = rewriter.types.get(name)
    if kind is None or kind.dtype is not DType.F32 or kind.shape is None:
        return False
    return sum(size != 1 for size in kind.shape) <= 1


class _Chain:
    """Cast(x) and what is known to be done to it, up to the last node that goes along."""

    def __init__(self, boundary: Boundary, x: Integers, scale: str) -> None:
        self._rewriter = boundary.rewriter
        self._x = x
        self._last = boundary.node_id
        self._between: list[NodeId] = []
        self._sources = [*x.sources, *boundary.node.sources]
        self._scales, more = _factors(self._rewriter, scale)
        self._sources += more
        self._in_turn = False
        # Whether the Cast of the sums serves nothing but the product with the scale.
        readers = [self._rewriter.node(i) for i in self._rewriter.user_ids(x.name)]
        self._alone = all(
            len(self._rewriter.user_ids(name)) == 1 and not self._rewriter.is_output(name)
            for node in readers
            for name in node.results
        )

    def dequantized(self) -> bool:
        """Write the dequantize, if this can be done."""
        rewriter = self._rewriter
        if not all(self._fits(name) for name in self._scales):
            return False
        if len(self._scales) == 1 and (second := self._next("Mul", _is_scale)) is not None:
            self._scales.append(second)
            self._in_turn = True
        constant = self._constant_scale()
        if constant is not None and self._typed(constant):
            return True
        if rewriter.types[self._x.name].quant is not None or np.any(self._x.zero):
            return False
        operands = [self._x.name, *self._scales]
        if (bias := self._next("Add", self._is_bias)) is not None:
            operands = [*[*operands, ""][:3], bias]
        op = Dequantize(in_turn=self._in_turn)
        self._replace(op, operands)
        return True

    def _constant_scale(self) -> Array | None:
        """The one product of constant scales that the sums are multiplied by, if it is that."""
        arrays = [self._rewriter.constants.get(name) for name in self._scales]
        if any(array is None or not np.all(array >= _TINY) for array in arrays):
            return None
        first, second = [*arrays, np.ones((), np.float32)][:2]
        assert first is not None
        assert second is not None
        with np.errstate(over="ignore", under="ignore"):
            product = np.asarray(first * second)
            largest = np.max(product.astype(np.float64)) * 2**32
        if not (largest < np.finfo(np.float32).max and np.all(product >= _TINY)):
            return None
        # One after the other the products round twice, unless a factor is a power of two.
        if self._in_turn and not (_is_power_of_two(first) or _is_power_of_two(second)):
            return None
        return product

    def _typed(self, scale: Array) -> bool:
        """Give the integers parameters, and let what follows read codes."""
        params = self._parameters(scale)
        if params is None:
            return False
        rewriter, last = self._rewriter, Boundary(self._rewriter, self._last)
        codes = None
        if self._alone:
            codes = typed_product(rewriter, self._last, self._x.name, params, self._sources)
        if codes is None:
            codes = self._recast(last, params)
        for node_id in self._between:
            rewriter.remove(node_id)
        last.moved([codes])
        return True

    def _recast(self, last: Boundary, params: QuantParams) -> str:
        name, hint = self._x.name, f"{self._x.name}.codes"
        kind = self._rewriter.types[name]
        if kind.quant == params:
            return name
        constant = self._rewriter.constants.get(name)
        if constant is not None:
            return last.constant_codes(hint, constant, kind.model_copy(update={"quant": params}))
        return last.emit(StorageCast(out=params), [name], hint, sources=self._sources)

    def _parameters(self, scale: Array) -> QuantParams | None:
        kind = self._rewriter.types[self._x.name]
        return broadcast_params(scale, self._x.zero, kind.dtype, kind.shape or ())

    def _fits(self, name: str) -> bool:
        rewriter = self._rewriter
        return broadcasts_to(rewriter.types[name].shape, rewriter.types[self._x.name].shape)

    def _is_bias(self, rewriter: Rewriter, name: str) -> bool:
        constant = name in rewriter.constants and rewriter.types[name].dtype is DType.F32
        return constant or _is_scale(rewriter, name)

    def _reader(self, op_type: str) -> NodeId | None:
        """The one node that reads the last result, if it is this operator and reads it once."""
        rewriter = self._rewriter
        (result,) = rewriter.node(self._last).results
        readers = rewriter.user_ids(result)
        if len(readers) != 1 or rewriter.is_output(result):
            return None
        node = rewriter.node(readers[0])
        if made_by(rewriter, node.results[0], op_type) is None or len(node.operands) != 2:
            return None
        return readers[0] if node.operands.count(result) == 1 else None

    def _next(self, op_type: str, wanted: Wanted) -> str | None:
        """Take the operator that follows along; returns the name of its other operand."""
        reader = self._reader(op_type)
        if reader is None:
            return None
        (result,) = self._rewriter.node(self._last).results
        node = self._rewriter.node(reader)
        other = node.operands[1 - node.operands.index(result)]
        if not (wanted(self._rewriter, other) and self._fits(other)):
            return None
        self._between.append(self._last)
        self._last = reader
        self._sources += node.sources
        return other

    def _replace(self, op: Dequantize, operands: Sequence[str]) -> None:
        rewriter = self._rewriter
        for node_id in self._between:
            rewriter.remove(node_id)
        last = rewriter.remove(self._last)
        rewriter.emit(op, operands, last.results, sources=self._sources, before=self._last)


def _factors(rewriter: Rewriter, scale: str) -> tuple[list[str], list[Source]]:
    """The two scales that a scale is the product of, else itself; and what multiplied them."""
    product = made_by(rewriter, scale, "Mul")
    if product is None or not all(_is_scale(rewriter, name) for name in product.operands):
        return [scale], []
    return list(product.operands), list(product.sources)


def _is_power_of_two(scale: Array) -> bool:
    return bool(np.all(np.frexp(scale)[0] == 0.5))
