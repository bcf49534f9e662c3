"""Pools, reductions, softmax and normalizations."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .drawing import Draw
from .patterns import MOVES, SUMS, WIDE, Pattern

X = (2, 3, 6, 5)
ROWS = (2, 5, 12)


def max_pool(d: Draw, *, same: bool = True, **attributes: Any) -> None:
    params = d.params("x")
    value = d.op("MaxPool", d.x(X, params=params), kernel_shape=[3, 2], **attributes)
    d.finish(value, params if same else None)


def with_indices(d: Draw) -> None:
    params = d.params("x")
    value = d.op("MaxPool", d.x(X, params=params), kernel_shape=[2, 2], results=2)
    d.finish(value, params)
    d.leave(f"{value}_1", np.int64)


def pool(op: str, d: Draw, **attributes: Any) -> str:
    return d.op(op, d.x(X), **attributes)


def average(name: str, /, kernel: str = "QLinearAveragePool", **attributes: Any) -> Pattern:
    attributes = {"kernel_shape": [3, 2], **attributes}
    return Pattern(name, partial(pool, "AveragePool", **attributes), SUMS, kernel=kernel)


def reduce(op: str, d: Draw, *axes: int, **attributes: Any) -> str:
    """Axes are an input since opset 18."""
    return d.op(op, d.x(X), d.ints(*axes), **attributes)


def reduce_old(op: str, d: Draw, **attributes: Any) -> str:
    return d.op(op, d.x(X), **attributes)


def softmax(op: str, d: Draw, shape: tuple[int, ...] = ROWS, *, axis: int = -1) -> str:
    return d.op(op, d.x(shape), axis=axis)


def softmax_of_256(d: Draw) -> None:
    """All of [0, 1) has a code: scale 1/256."""
    value = d.op("Softmax", d.x(ROWS))
    params = d.fitted(value, "y", at=0)
    d.finish(value, type(params)(params.dtype, 1 / 256, params.zero_point))


def _vector(d: Draw, count: int, low: float = 0.5, high: float = 2.0) -> str:
    return d.constant(d.rng.uniform(low, high, count).astype(np.float32))


def instance_norm(d: Draw) -> str:
    x = d.x(X)
    return d.op("InstanceNormalization", x, _vector(d, 3), _vector(d, 3, -1, 1))


def layer_norm(d: Draw, *, held: bool = False) -> str:
    x = d.x(ROWS)
    scale = d.held((12,))[0] if held else _vector(d, 12)
    return d.op("LayerNormalization", x, scale, _vector(d, 12, -1, 1), axis=-1)


def batch_norm(d: Draw) -> str:
    x = d.x(X)
    vectors = [_vector(d, 3), _vector(d, 3, -1, 1), _vector(d, 3, -1, 1), _vector(d, 3)]
    return d.op("BatchNormalization", x, *vectors)


def lrn(d: Draw) -> str:
    return d.op("LRN", d.x((2, 7, 4, 4)), size=3, alpha=0.01, beta=0.75, bias=1.0)


def cumsum(d: Draw, axis: int = 1, **attributes: Any) -> str:
    return d.op("CumSum", d.x(ROWS), d.constant(np.int64(axis)), **attributes)


POOLS: list[Pattern] = [
    Pattern("max-pool", max_pool, storages=WIDE),
    Pattern("max-pool-pads", partial(max_pool, pads=[1, 0, 1, 1], strides=[2, 1])),
    Pattern("max-pool-opset-17", max_pool, opset=17),
    Pattern("max-pool-opset-22", max_pool, opset=22, storages=WIDE),
    Pattern("max-pool-different-scale", partial(max_pool, same=False), storages=WIDE),
    Pattern("max-pool-dilations", partial(max_pool, dilations=[2, 1], ceil_mode=1)),
    Pattern("max-pool-indices", with_indices),
    average("average-pool"),
    average("average-pool-pads", pads=[1, 0, 1, 1], strides=[2, 1]),
    average("average-pool-include-pad", pads=[1, 1, 1, 1], count_include_pad=1),
    average("average-pool-ceil-mode", strides=[2, 2], ceil_mode=1),
    average("average-pool-dilations", kernel="", dilations=[2, 1]),
    Pattern("global-average-pool", partial(pool, "GlobalAveragePool"), SUMS,
            kernel="QLinearGlobalAveragePool"),
    Pattern("global-max-pool", partial(pool, "GlobalMaxPool")),
    Pattern("reduce-mean", lambda d: reduce("ReduceMean", d, 2, 3), SUMS),
    Pattern("reduce-mean-last", lambda d: reduce("ReduceMean", d, -1, keepdims=0), SUMS),
    Pattern("reduce-mean-opset-13", partial(reduce_old, "ReduceMean", axes=[1]), SUMS, opset=13),
    Pattern("reduce-sum", lambda d: reduce("ReduceSum", d, 2, 3), SUMS),
    Pattern("reduce-sum-channels", lambda d: reduce("ReduceSum", d, 1, keepdims=0), SUMS),
    Pattern("reduce-max", lambda d: reduce("ReduceMax", d, 1)),
    Pattern("reduce-min", lambda d: reduce("ReduceMin", d, 2, 3, keepdims=0)),
    Pattern("softmax", partial(softmax, "Softmax"), SUMS),
    Pattern("softmax-axis-1", partial(softmax, "Softmax", shape=X, axis=1), SUMS),
    Pattern("softmax-scale-256", softmax_of_256, SUMS),
    Pattern("log-softmax", partial(softmax, "LogSoftmax"), SUMS),
    Pattern("log-softmax-axis-1", partial(softmax, "LogSoftmax", shape=X, axis=1), SUMS),
    Pattern("instance-norm", instance_norm, SUMS),
    Pattern("layer-norm", layer_norm, SUMS),
    Pattern("layer-norm-quantized-scale", partial(layer_norm, held=True), SUMS),
    Pattern("batch-norm", batch_norm, MOVES),
    Pattern("lrn", lrn, SUMS),
    Pattern("cumsum", cumsum, SUMS),
    Pattern("cumsum-reverse-exclusive", partial(cumsum, axis=-1, reverse=1, exclusive=1), SUMS),
]  # fmt: skip
