"""One model of a boundary: its parameters, inputs and weights drawn from a seed.

Three seeds give three ways of choosing scales (binary fractions, decimals, neighbours of thirds)
and put every zero point once at each end of its range and once in the middle. What leaves an
operator is quantized by parameters that fit its real values, of which some saturate.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx

from support.models import Array, Builder, Params
from support.runtime import run_onnxruntime

F32 = np.float32
SEEDS = 3
SPAN = 16.0
"""The real values of an activation span about so much."""


def limits(storage: npt.DTypeLike) -> tuple[int, int]:
    """The lowest and the highest code."""
    info = ml_dtypes.iinfo(np.dtype(storage))
    return int(info.min), int(info.max)


class Draw:
    """A model under construction.

    Attributes:
        storage: the type of its activations.
        from_codes: whether codes enter and leave the graph, else floats.
        seed: 0 to SEEDS - 1.
        inputs: the arrays for the graph inputs.
        quanta: per output its quantum; None for one that nothing quantizes.
    """

    def __init__(
        self, name: str, storage: npt.DTypeLike, from_codes: bool, seed: int, build: Builder
    ) -> None:
        self.name = name
        self.storage: npt.DTypeLike = storage
        self.from_codes = from_codes
        self.seed = seed
        self.build = build
        self.inputs: dict[str, Array] = {}
        self.quanta: dict[str, float | None] = {}
        self.rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
        self._style = self._turn("style")

    # -- parameters -----------------------------------------------------------------------------

    def params(
        self,
        role: str,
        storage: npt.DTypeLike | None = None,
        factor: float = 1.0,
        at: int | None = None,
    ) -> Params:
        """Parameters of an activation; `at` puts the zero point at an end (0, 2) or the middle."""
        storage = self.storage if storage is None else storage
        low, high = limits(storage)
        turn = self._turn(role) if at is None else at
        zero = (low, (low + high + 1) // 2, high)[turn]
        return Params(storage, self.near(SPAN * factor / (high - low + 1)), zero)

    def near(self, scale: float) -> float:
        """A scale near this one, of the kind that this seed asks for."""
        if self._style == 0:
            return float(2.0 ** np.round(np.log2(scale)))
        if self._style == 1:
            step = 10.0 ** np.floor(np.log10(scale))
            return float(F32(np.round(scale / step) * step))
        third = F32(2.0 ** np.round(np.log2(scale * 3)) / 3)
        return float(np.nextafter(third, F32(2 * (self.seed % 2))))

    def fitted(
        self, value: str, role: str, storage: npt.DTypeLike | None = None, at: int | None = None
    ) -> Params:
        """Parameters that fit the real values of a result."""
        storage = self.storage if storage is None else storage
        real = self.measured(value).astype(np.float64)
        real = real[np.isfinite(real) & (np.abs(real) < 1e6)]
        low, high = limits(storage)
        turn = self._turn(role) if at is None else at
        largest = max(float(np.abs(real).max(initial=0.0)), 1e-3)
        below, above = max(float(-real.min(initial=0.0)), 0.0), float(real.max(initial=0.0))
        if at is None and (above, largest, below)[turn] < largest / 8:
            turn = 1
        reach = ((above or largest), largest, (below or largest))[turn]
        steps = (high - low, (high - low) // 2, high - low)[turn]
        zero = (low, (low + high + 1) // 2, high)[turn]
        return Params(storage, self.near(0.9 * reach / steps), zero)

    def measured(self, value: str) -> Array:
        """The real values of a result so far."""
        build = self.build
        graph = onnx.helper.make_graph(
            build.nodes, "part", build.inputs, [onnx.ValueInfoProto(name=value)], build.constants
        )
        imports = [onnx.helper.make_opsetid("", build.opset)]
        imports.append(onnx.helper.make_opsetid("com.microsoft", 1))
        model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)
        return run_onnxruntime(model, self.inputs, optimized=False, exact=False)[value]

    def _turn(self, role: str) -> int:
        order = np.random.default_rng(zlib.crc32(f"{self.name} {role}".encode())).permutation(3)
        return int(order[self.seed])

    # -- what enters ----------------------------------------------------------------------------

    def x(
        self,
        shape: Sequence[int],
        name: str = "x",
        *,
        params: Params | None = None,
        storage: npt.DTypeLike | None = None,
        factor: float = 1.0,
    ) -> str:
        """A graph input, quantized there or by the model; gives the dequantized value."""
        params = params or self.params(name, storage, factor)
        codes = self.codes(shape, params.dtype)
        if self.from_codes:
            self.inputs[name] = codes
            return self.build.dequantize(self.build.feed(name, shape, params.dtype), params)
        # Codes beyond both ends, and values on, between and near the ties.
        offset = self.rng.choice(np.asarray([0, 0.5, -0.5, 0.3, 3.0, -3.0]), shape)
        steps = codes.astype(np.float64) - params.zero_array + offset
        self.inputs[name] = np.asarray(steps.astype(F32) * params.scale_array, F32)
        value = self.build.feed(name, shape, np.float32)
        return self.build.dequantize(self.build.quantize(value, params), params)

    def codes(self, shape: Sequence[int], storage: npt.DTypeLike) -> Array:
        """Random codes, a quarter of them at the ends of the range."""
        low, high = limits(storage)
        anything = self.rng.integers(low, high + 1, shape)
        ends = self.rng.choice(np.asarray([low, high]), shape)
        return np.asarray(
            np.where(self.rng.random(shape) < 0.25, ends, anything), np.dtype(storage)
        )

    def scales(self, count: int, middle: float = 0.02) -> Array:
        """As many scales between half of and twice the middle one."""
        found = [self.near(middle * f) for f in self.rng.uniform(0.5, 2.0, count)]
        return np.asarray(found, F32)

    def held(
        self,
        shape: Sequence[int],
        storage: npt.DTypeLike = np.int8,
        *,
        axis: int | None = None,
        zeros: bool = False,
        scale: float = 0.02,
        name: str = "w",
    ) -> tuple[str, Params]:
        """A constant behind a DequantizeLinear; with `zeros` any zero points, else the middle."""
        low, high = limits(storage)
        size = () if axis is None else (shape[axis],)
        zero: Any = np.full(size, (low + high + 1) // 2)
        if zeros:
            zero = self.rng.integers(low, high + 1, size)
        found = self.near(scale) if axis is None else self.scales(shape[axis], scale)
        params = Params(storage, found, zero, axis)
        codes = self.build.constant(self.fresh(name), self.codes(shape, storage))
        return self.build.dequantize(codes, params), params

    def constant(self, value: Any, name: str = "c") -> str:
        """An initializer."""
        return self.build.constant(self.fresh(name), np.asarray(value))

    def ints(self, *values: int) -> str:
        """An initializer of int64."""
        return self.constant(np.asarray(values, np.int64))

    def reals(self, *shape: int, spread: float = 2.0) -> str:
        """A float initializer."""
        return self.constant(self.rng.normal(0, spread, shape).astype(F32))

    def fresh(self, name: str) -> str:
        """A name for a constant."""
        return f"{name}{len(self.build.constants)}"

    # -- operators, and what leaves -------------------------------------------------------------

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node; gives its first result."""
        return self.build.node(op_type, inputs, **attributes)

    def between(self, value: str, params: Params | None = None) -> str:
        """Q -> DQ of a result that goes on."""
        params = params or self.fitted(value, value)
        return self.build.dequantize(self.build.quantize(value, params), params)

    def finish(
        self,
        value: str,
        params: Params | None = None,
        *,
        storage: npt.DTypeLike | None = None,
        at: int | None = None,
    ) -> None:
        """Quantize a result and let it leave the graph: `y`, `y1`, ..."""
        params = params or self.fitted(value, f"{value} out", storage, at)
        name = f"y{len(self.quanta) or ''}"
        if self.from_codes:
            self.build.output(self.build.quantize(value, params, name), params.dtype)
            self.quanta[name] = 1.0
            return
        codes = self.build.quantize(value, params)
        self.build.output(self.build.dequantize(codes, params, name), np.float32)
        self.quanta[name] = float(np.max(params.scale_array))

    def leave(self, value: str, dtype: npt.DTypeLike = np.float32) -> None:
        """Let a result leave as it is: real values, indices, truth values."""
        self.build.output(value, dtype)
        self.quanta[value] = None if np.dtype(dtype).kind == "f" else 0.0

    def match(self, model: onnx.ModelProto) -> None:
        """Give the inputs the types that the finished model declares."""
        for value in model.graph.input:
            kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            self.inputs[value.name] = self.inputs[value.name].astype(kind)
