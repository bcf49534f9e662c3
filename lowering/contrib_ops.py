"""Operators of com.microsoft that stayed as they are, in numpy: the onnx package has none of them.

Source: the operators' documentation (ContribOperators.md of onnxruntime), and for what it leaves
open, the results of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from intonnx.ir.packing import unpacked
from intonnx.ir.types import Array

MICROSOFT = "com.microsoft"


class MatMulNBits(OpRun):
    """A [..., K] times weights of 2, 4 or 8 bits, dequantized in float32; result [..., N]."""

    op_domain = MICROSOFT

    def _run(self, a: Array, b: Array, scales: Array, *others: Any, **given: Any) -> tuple[Array]:
        zero_points, groups, bias = [*others, None, None, None][:3]
        rows, columns, block = int(given["K"]), int(given["N"]), int(given["block_size"])
        bits = int(given.get("bits") or 4)
        count = -(-rows // block)
        codes = unpacked(b.reshape(columns, count, -1), bits).reshape(columns, -1)[:, :rows]
        index = np.arange(rows) // block if groups is None else groups[:rows]
        real = codes.astype(np.float32)
        real -= _block_zeros(zero_points, columns, count, bits)[:, index]
        real *= scales.reshape(columns, count).astype(np.float32)[:, index]
        result = np.matmul(a.astype(np.float32), real.T)
        if bias is not None:
            result = result + bias.astype(np.float32)
        return (result.astype(a.dtype),)


def _block_zeros(given: Array | None, columns: int, count: int, bits: int) -> Array:
    if given is None:
        return np.full((columns, count), 1 << (bits - 1), np.float32)
    if given.dtype != np.uint8:
        return given.reshape(columns, count).astype(np.float32)
    return unpacked(given.reshape(columns, -1), bits)[:, :count].astype(np.float32)


class DynamicQuantizeLSTM(OpRun):
    """An LSTM with integer products: X [steps, batch, inputs] and each hidden state are quantized.

    X is quantized as a whole, the hidden states [batch, hidden] of a step together, as
    DynamicQuantizeLinear does. W and R are [directions, inputs or hidden, 4 * hidden], gates in the
    order i, o, f, c. Sequences that have ended have a hidden state of 0 in later steps.
    Raises ValueError for coupled gates and for other activations than Sigmoid, Tanh, Tanh.
    """

    op_domain = MICROSOFT

    def _run(
        self, x: Array, w: Array, r: Array, bias: Any, lengths: Any, h: Any, c: Any, peepholes: Any,
        *quantization: Any, **given: Any,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        (steps, batch, _), (directions, hidden) = x.shape, r.shape[:2]
        names = [str(name) for name in given.get("activations") or ()]
        usual = all(a == b for a, b in zip(names, ("Sigmoid", "Tanh", "Tanh") * 2, strict=False))
        if given.get("input_forget") or not usual:
            raise ValueError("coupled gates, or activations other than Sigmoid, Tanh, Tanh")
        lengths = np.full(batch, steps) if lengths is None else lengths
        state = (directions, batch, hidden)
        starts = [np.zeros(state, np.float32) if value is None else value for value in (h, c)]
        y = np.zeros((steps, *state), np.float32)
        last = np.zeros((2, *state), np.float32)
        for d in range(directions):
            backwards = d == 1 or given.get("direction") == "reverse"
            order = _order(steps, lengths) if backwards else None
            terms = _LstmTerms(
                w=(w[d], *(quantization[i][d] for i in (0, 1))),
                r=(r[d], *(quantization[i][d] for i in (2, 3))),
                bias=0 if bias is None else bias[d, : 4 * hidden] + bias[d, 4 * hidden :],
                peepholes=np.zeros(3 * hidden) if peepholes is None else peepholes[d],
                clip=float(given.get("clip") or 0) or np.inf,
            )
            data = x if order is None else np.take_along_axis(x, order[..., None], axis=0)
            made, last[:, d] = terms.steps(data, lengths, [start[d] for start in starts])
            y[:, d] = made if order is None else np.take_along_axis(made, order[..., None], axis=0)
        return y, last[0], last[1]


def _order(steps: int, lengths: Array) -> Array:
    """The steps [steps, batch] of each sequence from its end, what follows it in place."""
    step = np.arange(steps)[:, None]
    return np.where(step < lengths, lengths - 1 - step, step)


@dataclass(frozen=True)
class _LstmTerms:
    """One direction: weights with scale and zero point, bias [4 * hidden], peepholes, clip."""

    w: tuple[Array, Array, Array]
    r: tuple[Array, Array, Array]
    bias: Any
    peepholes: Array
    clip: float

    def steps(self, x: Array, lengths: Array, starts: list[Array]) -> tuple[Array, Array]:
        """The hidden states of all steps, and the last hidden and cell state of each sequence."""
        h, c = starts
        inputs = _dynamic_product(x.reshape(-1, x.shape[-1]), *self.w)
        inputs = inputs.reshape(*x.shape[:2], -1)
        made = np.zeros((len(x), *h.shape), np.float32)
        last = np.stack(starts)
        for step, given in enumerate(inputs):
            gates = given + _dynamic_product(h, *self.r) + self.bias
            alive = (step < lengths)[:, None]
            h, c = (np.where(alive, new, np.float32(0)) for new in self._cell(gates, c))
            made[step] = h
            last = np.where(alive, np.stack([h, c]), last)
        return made, last

    def _cell(self, gates: Array, c: Array) -> tuple[Array, Array]:
        def clipped(value: Array) -> Array:
            return np.clip(value, -self.clip, self.clip).astype(np.float32)

        i, o, f, g = np.split(gates, 4, axis=-1)
        p_i, p_o, p_f = np.split(self.peepholes, 3)
        kept = _sigmoid(clipped(f + p_f * c)) * c
        cell = kept + _sigmoid(clipped(i + p_i * c)) * np.tanh(clipped(g))
        hidden = _sigmoid(clipped(o + p_o * cell)) * np.tanh(cell)
        return hidden.astype(np.float32), cell.astype(np.float32)


def _dynamic_product(x: Array, w: Array, scale: Array, zero: Array) -> Array:
    """The product of `x` [M, K], quantized by its own range, and codes [K, N], times their scales.

    Source: ONNX DynamicQuantizeLinear-11; com.microsoft MatMulIntegerToFloat-1.
    """
    low, high = (f.reduce(x, axis=None, initial=np.float32(0)) for f in (np.minimum, np.maximum))
    step = np.float32(1) if low == high else np.float32((high - low) / np.float32(255))
    middle = np.rint(np.clip(np.float32(0) - low / step, 0, 255))
    codes = np.rint(np.clip(x / step, -middle, 255 - middle)).astype(np.int64)
    sums = codes @ (w.astype(np.int64) - zero.astype(np.int64))
    return np.asarray(sums.astype(np.float32) * (step * scale), np.float32)


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)), np.float32)


CONTRIB_OPS: Sequence[type[OpRun]] = (DynamicQuantizeLSTM, MatMulNBits)
