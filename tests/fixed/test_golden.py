"""Codes of the numerics `fixed`, pinned: the same on every machine and in every version."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from intonnx.ir.op import Op
from intonnx.ir.ops.add import Add, Subtract
from intonnx.ir.ops.avg_pool import AvgPool2d
from intonnx.ir.ops.batch_norm import BatchNorm
from intonnx.ir.ops.divide import Divide
from intonnx.ir.ops.grid_sample import GridSample
from intonnx.ir.ops.instance_norm import InstanceNorm
from intonnx.ir.ops.layer_norm import LayerNorm
from intonnx.ir.ops.lrn import LocalResponseNorm
from intonnx.ir.ops.multiply import Multiply
from intonnx.ir.ops.power import Power
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.ops.reduce import Mean
from intonnx.ir.ops.resize import Resize
from intonnx.ir.ops.softmax import Softmax
from intonnx.ir.types import DType, QuantParams, accumulator
from support.fixed import Given, params, run_op

SHAPE = (2, 4, 6, 8)


def codes(kind: QuantParams, shape: Sequence[int] = SHAPE, step: int = 7919) -> Given:
    """Every code in turn, far apart."""
    low, high = kind.storage.low, kind.storage.high
    every = (np.arange(np.prod(shape)) * step + 13) % (high - low + 1) + low
    return Given(every.reshape(shape).astype(kind.storage.numpy), kind)


def reals(values: Sequence[float]) -> Given:
    return Given(np.asarray(values, np.float32), None, constant=True)


X, Y = params(DType.U8, 0.037, 113), params(DType.I8, 0.021, -7)
WIDE, OUT = params(DType.U16, 0.00037, 30011), params(DType.U8, 0.05, 128)
FINE = params(DType.I16, 0.0003, 5)
SUMS = Given(np.arange(-900, 900, dtype=np.int32).reshape(-1, 8) * 104729,
             accumulator(np.asarray([0.1, 1e-3, 7e-7, 2e-8] * 2, np.float32), 1))  # fmt: skip
CHANNELS = [reals([1.0, -0.5, 2.0, 0.25]), reals([0.5, 0.0, -1.0, 3.0])]
STATISTICS = [*CHANNELS, reals([0.1, -0.2, 0.3, 0.0]), reals([1.0, 0.01, 4.0, 0.3])]
POOL: dict[str, Any] = {"kernel": (3, 2), "strides": (2, 1), "dilations": (1, 1)}

CASES: dict[str, tuple[Op, list[Given], int]] = {
    "requantize": (Requantize(out=FINE), [codes(WIDE)], 0x88f0c429),
    "requantize-sums": (Requantize(out=OUT), [SUMS], 0xacadd166),
    "add": (Add(out=OUT), [codes(X), codes(Y, step=31)], 0x25faa588),
    "subtract-wide": (Subtract(out=FINE), [codes(WIDE), codes(X, step=31)], 0xe8b51f28),
    "multiply": (Multiply(out=FINE), [codes(X), codes(Y, step=31)], 0xeb56ff62),
    "divide": (Divide(out=OUT), [codes(WIDE), codes(Y, step=31)], 0x9f4d471b),
    "power": (Power(out=FINE), [codes(WIDE), codes(Y, step=31)], 0xf565b5ea),
    "average-pool": (AvgPool2d(pads=(1, 0, 1, 1), out=OUT, **POOL), [codes(X)], 0xeed0aff5),
    "mean": (Mean(axes=(1, 3), out=FINE), [codes(X)], 0x1cf8eb3d),
    "softmax": (Softmax(axis=3, out=params(DType.U8, 1 / 255, 0)), [codes(X)], 0xa8581ab5),
    "log-softmax": (Softmax(axis=3, logarithm=True, out=FINE), [codes(WIDE)], 0xbda983d4),
    "layer-norm": (LayerNorm(axis=-1, out=FINE), [codes(X), reals(range(1, 9))], 0x4f9f12d2),
    "instance-norm": (InstanceNorm(out=OUT), [codes(WIDE), *CHANNELS], 0x964c8672),
    "batch-norm": (BatchNorm(out=OUT), [codes(X), *STATISTICS], 0x65f98a0),
    "lrn": (LocalResponseNorm(size=3, alpha=0.3, out=OUT), [codes(X)], 0x50457cca),
    "resize": (Resize(axes=(2, 3), sizes=(11, 13), mode="cubic", out=OUT), [codes(X)], 0x37837351),
    "grid-sample": (
        GridSample(mode="linear", out=FINE),
        [codes(X), codes(params(DType.I8, 0.0079, 3), (2, 5, 5, 2))], 0xceb41a07,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_codes_never_change(name: str) -> None:
    op, operands, wanted = CASES[name]
    found = np.ascontiguousarray(run_op(op, operands))
    assert len(np.unique(found)) > 4
    little = found.astype(found.dtype.newbyteorder("<"))
    assert f"{zlib.crc32(little.tobytes()):#x}" == f"{wanted:#x}"
