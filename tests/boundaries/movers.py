"""Operators that move codes, choose among them, or change their parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto

from support.models import Params

from .drawing import Draw
from .patterns import SUMS, WIDE, Pattern, same_and_different, without_zero_point

X = (2, 3, 4, 6)
INDICES = np.asarray([[2, 0], [-1, 1]], np.int64)


def plain(op: str, **attributes: Any) -> Callable[[Draw, str], str]:
    """An operator whose data is its only input."""
    return lambda d, x: d.op(op, x, **attributes)


def with_ints(op: str, *lists: list[int], **attributes: Any) -> Callable[[Draw, str], str]:
    """An operator with lists of integers after the data."""
    return lambda d, x: d.op(op, x, *(d.ints(*values) for values in lists), **attributes)


def gather(d: Draw, x: str) -> str:
    return d.op("Gather", x, d.constant(INDICES), axis=1)


def gather_elements(d: Draw, x: str) -> str:
    return d.op("GatherElements", x, d.constant(d.rng.integers(-3, 3, X)), axis=1)


def cast_pair(to: int) -> Callable[[Draw, str], str]:
    return lambda d, x: d.op("Cast", d.op("Cast", x, to=to), to=TensorProto.FLOAT)


def scatter_nd(d: Draw, x: str, *, held: bool = True) -> str:
    """Rows of a constant take the place of rows of the data."""
    indices = d.constant(np.asarray([[1, 0], [0, 2]], np.int64))
    updates = d.held((2, 4, 6), d.storage, scale=0.05)[0] if held else d.x((2, 4, 6), "updates")
    return d.op("ScatterND", x, indices, updates)


def pad(mode: str, value: float | None) -> Callable[[Draw, str], str]:
    def move(d: Draw, x: str) -> str:
        pads = d.ints(0, 0, 1, 2, 0, 1 if mode == "constant" else 0, 0, 3)
        more = [] if value is None else [d.constant(np.float32(value))]
        return d.op("Pad", x, pads, *more, mode=mode)

    return move


def pad_by_quantized(d: Draw, x: str) -> str:
    value = d.build.constant("value", np.asarray(d.codes((), np.int8)))
    value = d.build.dequantize(value, Params(np.int8, d.near(0.03), 5))
    return d.op("Pad", x, d.ints(0, 0, 1, 2, 0, 1, 0, 3), value)


def resize(mode: str, coordinates: str = "half_pixel", **more: Any) -> Callable[[Draw, str], str]:
    def move(d: Draw, x: str) -> str:
        scales = d.constant(np.asarray([1, 1, 2, 1.5], np.float32))
        options = {"mode": mode, "coordinate_transformation_mode": coordinates, **more}
        return d.op("Resize", x, "", scales, **options)

    return move


MOVERS_OF_ONE: dict[str, Callable[[Draw, str], str]] = {
    "transpose": plain("Transpose", perm=[0, 2, 3, 1]),
    "reshape": with_ints("Reshape", [0, -1, 8]),
    "flatten": plain("Flatten", axis=2),
    "squeeze": lambda d, x: d.op("Squeeze", d.op("Slice", x, d.ints(1), d.ints(2), d.ints(1)),
                                 d.ints(1)),
    "unsqueeze": with_ints("Unsqueeze", [0, -1]),
    "expand": with_ints("Expand", [3, 1, 1, 1, 1]),
    "tile": with_ints("Tile", [1, 2, 1, 2]),
    "slice": with_ints("Slice", [1, -1], [4, -9], [2, 3], [2, -2]),
    "gather": gather,
    "gather-elements": gather_elements,
    "depth-to-space": lambda d, x: d.op("DepthToSpace", d.op("Reshape", x, d.ints(2, 12, 2, 3)),
                                        blocksize=2, mode="CRD"),
    "space-to-depth": plain("SpaceToDepth", blocksize=2),
    "identity": plain("Identity"),
    "dropout": plain("Dropout"),
    "cast-pair-float16": cast_pair(TensorProto.FLOAT16),
    "cast-pair-double": cast_pair(TensorProto.DOUBLE),
    "scatter-nd": scatter_nd,
    "scatter-nd-of-activations": partial(scatter_nd, held=False),
    "nearest-resize": resize("nearest", "asymmetric", nearest_mode="floor"),
    "pad": pad("constant", None),
    "pad-constant": pad("constant", 1.3),
    "pad-quantized-constant": pad_by_quantized,
    "pad-reflect": pad("reflect", None),
    "pad-edge": pad("edge", None),
    "einsum-transpose": plain("Einsum", equation="abcd->adcb"),
}  # fmt: skip


# -- several results or operands ----------------------------------------------------------------


def split(d: Draw, *, same: bool) -> None:
    params = d.params("x")
    first = d.op("Split", d.x(X, params=params), d.ints(1, 2, 3), axis=-1, results=3)
    for name in (first, f"{first}_1", f"{first}_2"):
        d.finish(name, params if same else None)


def concat(d: Draw, count: int, *, same: bool, real: bool = False) -> None:
    params = d.params("x")
    names = [d.x((2, i + 2, 4), f"x{i}", params=params if same else None, factor=1 + i / 2)
             for i in range(count)]  # fmt: skip
    if real:
        names.append(d.reals(2, 1, 4))
    d.finish(d.op("Concat", *names, axis=1), params if same else None)


def where(d: Draw, other: str, mask: tuple[int, ...] = X) -> str:
    condition = d.constant(d.rng.random(mask) < 0.5)
    x = d.x(X, "a")
    if other == "activation":
        return d.op("Where", condition, x, d.x(X, "b", factor=0.5))
    if other == "quantized":
        return d.op("Where", condition, x, d.held((6,), d.storage)[0])
    return d.op("Where", condition, x, d.constant(np.float32(other)))


def masked(d: Draw) -> None:
    """The mask's -1e9 saturates."""
    value = where(d, "-1e9")
    d.finish(value, d.params("y"))


def embedding(d: Draw) -> str:
    """Indices choose rows of a quantized constant."""
    d.inputs["indices"] = d.rng.integers(0, 9, (2, 4))
    indices = d.build.feed("indices", (2, 4), np.int64)
    return d.op("Gather", d.held((9, 6), d.storage, scale=0.05)[0], indices)


def extremum(op: str, d: Draw, **attributes: Any) -> None:
    d.leave(d.op(op, d.x(X), **attributes), np.int64)


def top_k(d: Draw, *, same: bool) -> None:
    params = d.params("x")
    value = d.op("TopK", d.x(X, params=params), d.ints(3), axis=-1, results=2)
    d.finish(value, params if same else None)
    d.leave(f"{value}_1", np.int64)


def einsum(d: Draw, equation: str, b: tuple[int, ...]) -> str:
    return d.op("Einsum", d.x((2, 3, 4), "a"), d.x(b, "b"), equation=equation)


def grid_sample(d: Draw, mode: str) -> str:
    grid = d.constant(d.rng.uniform(-1.1, 1.1, (2, 5, 3, 2)).astype(np.float32))
    return d.op("GridSample", d.x(X), grid, mode=mode)


def requantize(d: Draw, storage: Any = None) -> None:
    x = d.x(X)
    d.finish(x, d.params("y", storage, 0.7))


def nothing(d: Draw) -> None:
    params = d.params("x")
    d.finish(d.x(X, params=params), params)


def narrower(d: Draw) -> None:
    requantize(d, np.uint8 if np.dtype(d.storage).kind == "u" else np.int8)


def other_sign(d: Draw) -> None:
    requantize(d, np.int8 if np.dtype(d.storage).kind == "u" else np.uint8)


def twice(d: Draw) -> str:
    """Two unequal pairs are never merged."""
    return d.between(d.x(X), d.params("between", factor=0.5))


def omitted(d: Draw, move: Callable[[Draw, str], str]) -> None:
    params = without_zero_point(d.params("x"))
    d.finish(move(d, d.x(X, params=params)), params)


_RESIZES = {
    "resize-linear-half-pixel": resize("linear"),
    "resize-linear-align-corners": resize("linear", "align_corners"),
    "resize-cubic": resize("cubic"),
}

MOVERS: list[Pattern] = [
    *(p for name, move in MOVERS_OF_ONE.items() for p in same_and_different(name, move)),
    *(Pattern(f"{name}-omitted-zero-points", partial(omitted, move=MOVERS_OF_ONE[name]))
      for name in ("transpose", "reshape", "pad", "slice")),
    *(Pattern(f"{name}-16-bit", lambda d, m=MOVERS_OF_ONE[name]: m(d, d.x(X)), storages=WIDE[2:])
      for name in ("transpose", "pad-constant", "gather")),
    *(Pattern(name, lambda d, m=move: m(d, d.x(X)), SUMS) for name, move in _RESIZES.items()),
    Pattern("split-same", partial(split, same=True)),
    Pattern("split-different", partial(split, same=False)),
    Pattern("concat-same", partial(concat, count=2, same=True)),
    Pattern("concat-different", partial(concat, count=2, same=False)),
    Pattern("concat-of-three", partial(concat, count=3, same=False)),
    Pattern("concat-float-constant", partial(concat, count=1, same=False, real=True)),
    Pattern("where", partial(where, other="activation")),
    Pattern("where-quantized-constant", partial(where, other="quantized")),
    Pattern("where-float-scalar", partial(where, other="1.25")),
    Pattern("where-broadcast-condition", partial(where, other="activation", mask=(3, 1, 1))),
    Pattern("where-masked", masked),
    Pattern("gather-embedding", embedding),
    Pattern("argmax", partial(extremum, "ArgMax", axis=1, keepdims=0)),
    Pattern("argmax-last-index", partial(extremum, "ArgMax", axis=-1, select_last_index=1)),
    Pattern("argmin", partial(extremum, "ArgMin", axis=2)),
    Pattern("top-k-same", partial(top_k, same=True)),
    Pattern("top-k-different", partial(top_k, same=False)),
    Pattern("einsum-product", partial(einsum, equation="bij,bjk->bik", b=(2, 4, 5)), SUMS),
    Pattern("einsum-transposed", partial(einsum, equation="bij,bkj->bik", b=(2, 5, 4)), SUMS),
    Pattern("grid-sample", partial(grid_sample, mode="linear"), SUMS),
    Pattern("grid-sample-nearest", partial(grid_sample, mode="nearest")),
    Pattern("requantize", requantize, storages=WIDE),
    Pattern("requantize-equal", nothing, storages=WIDE),
    Pattern("requantize-other-sign", other_sign),
    Pattern("requantize-16-to-8", narrower, storages=WIDE[2:]),
    Pattern("requantize-twice", twice, storages=WIDE),
]  # fmt: skip
