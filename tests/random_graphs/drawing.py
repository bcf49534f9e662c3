"""A quantized graph of 1 to 30 operators that hypothesis draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from hypothesis import strategies as st

from boundaries.test_drawn import HypothesisDraw
from support.models import Array, Builder, Params

MOST = 30
_IMAGES = ((2, 4, 5, 6), (2, 2, 3, 3), (2, 1, 1, 1), (2, 4, 1, 7))
_SHAPES = (*_IMAGES, (), (1,), (5,), (3, 4), (0, 3), (2, 0, 3), (1, 4, 1), (2, 3, 4))
_STORAGES: tuple[npt.DTypeLike, ...] = (np.uint8, np.uint8, np.int8, np.int8, np.uint16, np.int16)
_UNARY = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Abs", "Neg", "HardSigmoid", "Clip", "Floor")
_BINARY = ("Add", "Mul", "Sub", "Min", "Max")
_SUMMING = frozenset(
    {"Conv", "MatMul", "AveragePool", "GlobalAveragePool", "Softmax", "ReduceMean"}
)


@dataclass(frozen=True)
class Value:
    """A real value behind a DequantizeLinear: its name, shape, and parameters."""

    name: str
    shape: tuple[int, ...]
    params: Params


@dataclass
class Drawn:
    """A model with its inputs.

    Attributes:
        model: the model.
        inputs: arrays for its inputs.
        exact: names of codes that the literal numerics give bit for bit.
        batched: whether axis 0 is a batch of any size.
    """

    model: onnx.ModelProto
    inputs: dict[str, npt.NDArray[Any]]
    exact: set[str]
    batched: bool


class _Once(HypothesisDraw):
    """Measures every value once."""

    def __init__(self, data: st.DataObject, from_codes: bool) -> None:
        super().__init__(data, "random", np.uint8, from_codes, Builder(21))
        self._measured: dict[str, Array] = {}

    def measured(self, value: str) -> Array:
        """The real values of a result."""
        if value not in self._measured:
            self._measured[value] = np.asarray(super().measured(value))
        return self._measured[value]


class Drawer:
    """Adds operators that read values made before: branches, shared values, shared constants."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self._batched = data.draw(st.booleans(), label="batched")
        from_codes = data.draw(st.booleans(), label="codes enter")
        self._draw = _Once(data, from_codes)
        self._values: list[Value] = []
        self._read: set[str] = set()
        self._weights: dict[tuple[int, ...], str] = {}
        self._exact: set[str] = set()

    def drawn(self) -> Drawn:
        """The finished model."""
        for index in range(self._data.draw(st.integers(1, 3), label="inputs")):
            self._feed(f"x{index}")
        for _ in range(self._data.draw(st.integers(1, MOST), label="operators")):
            self._add()
        left = [value for value in self._values if value.name not in self._read]
        for value in left or self._values[-1:]:
            self._draw.leave(self._draw.op("Identity", value.name))
        model = self._draw.build.model()
        self._draw.match(model)
        if self._batched:
            for value in (*model.graph.input, *model.graph.output):
                if value.type.tensor_type.shape.dim:
                    value.type.tensor_type.shape.dim[0].dim_param = "N"
        return Drawn(model, self._draw.inputs, self._exact, self._batched)

    def _choose(self, options: Any, label: str) -> Any:
        return self._data.draw(st.sampled_from(options), label=label)

    def _feed(self, name: str) -> None:
        shape = self._choose(_IMAGES if self._batched else _SHAPES, "shape")
        params = self._draw.params(name, self._choose(_STORAGES, "type"))
        value = self._draw.x(shape, name, params=params)
        self._values.append(Value(value, shape, params))

    def _add(self) -> None:
        x = self._choose(self._values, "reads")
        kinds = ["unary", "binary", "binary constant", "reduce"]
        if len(x.shape) == 4 and x.shape[1]:
            kinds += ["conv", "conv", "pool", "global pool", "softmax", "swap"]
        if x.shape and x.shape[-1]:
            kinds += ["matmul", "concat"]
        if not self._batched:
            kinds += ["flatten", "transpose"]
        kind = self._choose(kinds, "operator")
        self._read.add(x.name)
        made = getattr(self, f"_{kind.replace(' ', '_')}")(x)
        if made is not None:
            self._finish(*made)

    def _finish(self, result: str, like: Params | None = None) -> None:
        node = next(n for n in self._draw.build.nodes if result in n.output)
        shape = self._draw.measured(result).shape
        storage = like.dtype if like is not None else self._choose(_STORAGES, "type of the result")
        params = like or self._draw.fitted(result, result, storage)
        codes = self._draw.build.quantize(result, params)
        if node.op_type not in _SUMMING:
            self._exact.add(codes)
        self._values.append(Value(self._draw.build.dequantize(codes, params), shape, params))

    def _unary(self, x: Value) -> tuple[str]:
        op = self._choose(_UNARY, "function")
        bounds = [self._draw.constant(np.float32(v)) for v in (-1, 2)] if op == "Clip" else []
        return (self._draw.op(op, x.name, *bounds),)

    def _binary(self, x: Value) -> tuple[str]:
        others = [v for v in self._values if _fits(v.shape, x.shape, self._batched)]
        other = self._choose(others, "second")
        self._read.add(other.name)
        pair = [x.name, other.name]
        if self._data.draw(st.booleans(), label="exchanged"):
            pair.reverse()
        return (self._draw.op(self._choose(_BINARY, "function"), *pair),)

    def _binary_constant(self, x: Value) -> tuple[str]:
        shape = x.shape[1:] if self._data.draw(st.booleans(), label="broadcast") else ()
        storage = self._choose(_STORAGES, "type of the constant")
        return (self._draw.op(self._choose(_BINARY, "function"), x.name,
                              self._draw.held(shape, storage, zeros=True)[0]),)  # fmt: skip

    def _weight(self, shape: tuple[int, ...], axis: int | None) -> str:
        if shape not in self._weights or self._data.draw(st.booleans(), label="another weight"):
            storage = self._choose((np.int8, np.uint8), "type of the weight")
            self._weights[shape] = self._draw.held(shape, storage, axis=axis)[0]
        return self._weights[shape]

    def _conv(self, x: Value) -> tuple[str]:
        out = self._choose((1, 3, 4), "channels")
        axis = self._choose((None, 0), "per channel")
        weight = self._weight((out, x.shape[1], 1, 1), axis)
        return (self._draw.op("Conv", x.name, weight, pads=[0, 1, 1, 0]),)

    def _matmul(self, x: Value) -> tuple[str]:
        weight = self._weight((x.shape[-1], self._choose((1, 4), "columns")),
                              self._choose((None, 1), "per column"))  # fmt: skip
        return (self._draw.op("MatMul", x.name, weight),)

    def _pool(self, x: Value) -> tuple[str] | tuple[str, Params]:
        op = self._choose(("MaxPool", "AveragePool"), "pool")
        eight = np.dtype(x.params.dtype).itemsize == 1
        kernel = [1, min(2, x.shape[3])]
        result = self._draw.op(op, x.name, kernel_shape=kernel)
        return (result, x.params) if op == "MaxPool" and eight else (result,)

    def _global_pool(self, x: Value) -> tuple[str]:
        return (self._draw.op("GlobalAveragePool", x.name),)

    def _softmax(self, x: Value) -> tuple[str]:
        return (self._draw.op("Softmax", x.name, axis=self._choose((1, -1), "axis")),)

    def _reduce(self, x: Value) -> tuple[str] | None:
        if not x.shape or x.shape[-1] == 0:
            return self._unary(x)
        return (self._draw.op("ReduceMean", x.name, self._draw.ints(-1), keepdims=1),)

    def _concat(self, x: Value) -> tuple[str]:
        others = [v for v in self._values if v.shape[:-1] == x.shape[:-1] and v.shape]
        other = self._choose(others, "second")
        self._read.add(other.name)
        axis = -1 if not self._batched or len(x.shape) > 1 else 0
        return (self._draw.op("Concat", x.name, other.name, axis=axis),)

    def _swap(self, x: Value) -> tuple[str, Params]:
        return self._draw.op("Transpose", x.name, perm=[0, 1, 3, 2]), x.params

    def _transpose(self, x: Value) -> tuple[str, Params]:
        return self._draw.op("Transpose", x.name), x.params

    def _flatten(self, x: Value) -> tuple[str, Params]:
        shape = (int(np.prod(x.shape)),)
        return self._draw.op("Reshape", x.name, self._draw.ints(*shape), allowzero=1), x.params


def _fits(one: tuple[int, ...], other: tuple[int, ...], batched: bool) -> bool:
    """Whether two shapes broadcast; in a batch their first axes are the same."""
    if batched and len(one) != len(other):
        return False
    pairs = zip(one[::-1], other[::-1], strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)
