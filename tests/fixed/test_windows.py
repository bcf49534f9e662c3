"""Means, resizes, samples and blocked products under `fixed`, against fractions and `qlinear`."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from intonnx.ir.errors import CompileFailure
from intonnx.ir.ops.avg_pool import AvgPool2d
from intonnx.ir.ops.blocked_dense import BlockedDense
from intonnx.ir.ops.global_avg_pool import GlobalAvgPool2d
from intonnx.ir.ops.grid_sample import GridSample
from intonnx.ir.ops.reduce import Mean
from intonnx.ir.ops.resize import Resize
from intonnx.ir.types import DType, QuantParams, accumulator
from support.fixed import (
    NARROW,
    WIDE,
    Given,
    assert_near,
    assert_one_quantum,
    centred,
    code,
    decompose,
    drawn_codes,
    drawn_params,
    half_up,
    params,
    reals,
    run_op,
    scale_of,
    value,
)
from support.models import Array


def near(draw: st.DrawFn, x: QuantParams) -> QuantParams:
    """Parameters of a mean: the scale of `x` times a telling factor."""
    factor = draw(st.sampled_from([1.0, 0.5, 1 / 3, 0.9999999, 3.0]))
    step = 2.0 ** (x.storage.bits - 8)
    storage = draw(st.sampled_from(WIDE))
    scale = float(x.scalar_scale) * factor * step / 2.0 ** (storage.bits - 8)
    return draw(drawn_params([storage], st.just(float(np.float32(scale)))))


def mean_codes(sums: list[int], counts: list[int], x: QuantParams, out: QuantParams) -> list[int]:
    """One multiplier for x.scale / (out.scale * count)."""
    ratio = scale_of(x) / scale_of(out)
    pairs = {count: value(decompose(ratio / count)) for count in set(counts)}
    return [code(half_up(s * pairs[n]), out) for s, n in zip(sums, counts, strict=True)]


@settings(max_examples=30)
@given(st.data())
def test_pools_have_a_multiplier_for_each_count(data: st.DataObject) -> None:
    x = data.draw(drawn_params(WIDE))
    out = data.draw(st.composite(near)(x))
    codes = data.draw(drawn_codes(x, (1, 2, 5, 4)))
    include = data.draw(st.booleans())
    pads = data.draw(st.sampled_from([(0, 0, 0, 0), (1, 0, 1, 1)]))
    op = AvgPool2d(kernel=(3, 2), strides=(2, 1), dilations=(1, 1), pads=pads,
                   count_include_pad=include, out=out)  # fmt: skip
    found = run_op(op, [Given(codes, x)])
    sums, counts = [], []
    for channel, i, j in product(range(2), *map(range, found.shape[2:])):
        rows = [2 * i - pads[0] + k for k in range(3)]
        columns = [j - pads[1] + k for k in range(2)]
        cells = [(r, c) for r in rows for c in columns if 0 <= r < 5 and 0 <= c < 4]
        sums.append(sum(int(codes[0, channel, r, c]) - x.scalar_zero_point for r, c in cells))
        counts.append(6 if include else len(cells))
    assert found.ravel().tolist() == mean_codes(sums, counts, x, out)
    assert_one_quantum(op, [Given(codes, x)], found)


@settings(max_examples=30)
@given(st.data())
def test_means_over_axes(data: st.DataObject) -> None:
    x = data.draw(drawn_params(WIDE))
    out = data.draw(st.composite(near)(x))
    codes = data.draw(drawn_codes(x, (2, 3, 4, 5)))
    rows = codes.reshape(6, 20)
    wanted = mean_codes([sum(centred(row, x)) for row in rows], [20] * 6, x, out)
    for op in (GlobalAvgPool2d(out=out), Mean(axes=(2, 3), out=out)):
        found = run_op(op, [Given(codes, x)])
        assert found.ravel().tolist() == wanted
        if out.storage.bits == x.storage.bits:
            assert_one_quantum(op, [Given(codes, x)], found)


def test_the_mean_of_nothing_has_the_least_code() -> None:
    x, out = params(DType.U8, 0.1, 3), params(DType.I8, 0.1, 3)
    found = run_op(Mean(axes=(1,), out=out), [Given(np.zeros((2, 0), np.uint8), x)])
    assert found.tolist() == [[-128], [-128]]


def taps(before: int, after: int, *, cubic: bool) -> list[list[tuple[int, Fraction]]]:
    """ONNX half_pixel: cells and weights of each cell of the result, by float32 places."""
    found = []
    for index in range(after):
        scale = np.float32(after / before)
        place = (np.float32(index) + np.float32(0.5)) / scale - np.float32(0.5)
        below = int(np.floor(place))
        s = Fraction(float(place)) - below
        weights = {0: 1 - s, 1: s}
        if cubic:
            a = Fraction(-3, 4)
            close = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (s, 1 - s)]
            far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (1 + s, 2 - s)]
            weights = dict(enumerate([far[0], *close, far[1]], -1))
        found.append([(min(max(below + k, 0), before - 1), w) for k, w in weights.items()])
    return found


@settings(max_examples=20)
@given(st.data())
def test_interpolation_along_axes(data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["linear", "cubic"]))
    x = data.draw(drawn_params(WIDE))
    out = data.draw(st.composite(near)(x))
    codes = data.draw(drawn_codes(x, (1, 1, 4, 5)))
    sizes = data.draw(st.sampled_from([(7, 9), (8, 3), (4, 13)]))
    op = Resize(axes=(2, 3), sizes=sizes, mode=mode, out=out)
    real = np.array(reals(codes, x), object).reshape(4, 5)
    rows, columns = (taps(b, a, cubic=mode == "cubic")
                     for b, a in zip((4, 5), sizes, strict=True))  # fmt: skip
    wanted = [sum((w * v * real[r, c] for r, w in row for c, v in column), Fraction(0))
              for row in rows for column in columns]  # fmt: skip
    found = run_op(op, [Given(codes, x)])
    assert_near(found, wanted, out, Fraction(1, 256))
    assert_one_quantum(op, [Given(codes, x)], found)


def test_accumulators_are_interpolated_too() -> None:
    x, out = accumulator(np.float32(1e-8), None), params(DType.I8, 0.1, 3)
    sums = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, (1, 1, 4, 4)).astype(np.int32)
    op = Resize(axes=(2, 3), sizes=(7, 8), mode="cubic", out=out)
    assert_one_quantum(op, [Given(sums, x)], run_op(op, [Given(sums, x)]))


def test_weights_that_int64_cannot_hold_have_no_fixed_form() -> None:
    x = params(DType.U16, 0.1, 3)
    op = Resize(axes=(1,), sizes=(7,), mode="cubic", cubic_a=-1e12, out=x)
    with pytest.raises(CompileFailure, match="too large"):
        run_op(op, [Given(np.zeros((1, 4), np.uint16), x)])


@settings(max_examples=40)
@given(st.data())
def test_samples(data: st.DataObject) -> None:
    """Places from codes, from constants, and real ones that enter the graph."""
    x = data.draw(drawn_params(WIDE))
    out = data.draw(st.composite(near)(x))
    codes = data.draw(drawn_codes(x, (2, 3, 4, 5)))
    grid = data.draw(drawn_params(NARROW, st.sampled_from([0.01, 1 / 64])))
    places = data.draw(drawn_codes(grid, (2, 3, 2, 2)))
    op = GridSample(
        mode=data.draw(st.sampled_from(["nearest", "linear", "cubic"])),
        padding=data.draw(st.sampled_from(["zeros", "border", "reflection"])),
        align_corners=data.draw(st.booleans()), out=out,
    )  # fmt: skip
    real = np.float32(reals(places, grid)).reshape(places.shape)
    wanted: Array | None = None
    for second in (Given(places, grid), Given(places, grid, True), Given(real),
                   Given(real, None, True)):  # fmt: skip
        found = run_op(op, [Given(codes, x), second])
        assert_one_quantum(op, [Given(codes, x), second], found)
        wanted = found if wanted is None else wanted
        np.testing.assert_array_equal(found, wanted)


def test_samples_at_places_with_a_scale_for_each_coordinate() -> None:
    x = params(DType.U8, 0.1, 3)
    grid = QuantParams(storage=DType.I8, scale=np.float32([0.01, 0.02]),
                       zero_point=np.array([3, -5]), axis=3)  # fmt: skip
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 256, (1, 2, 4, 5)).astype(np.uint8)
    places = rng.integers(-100, 100, (1, 3, 3, 2)).astype(np.int8)
    op = GridSample(mode="linear", out=x)
    operands = [Given(codes, x), Given(places, grid)]
    assert_one_quantum(op, operands, run_op(op, operands))
    across = grid.with_axis(2)
    with pytest.raises(CompileFailure, match="scales along an axis"):
        run_op(op, [Given(codes, x), Given(places[:, :, :2], across)])


@settings(max_examples=20)
@given(st.data())
def test_blocked_products(data: st.DataObject) -> None:
    a = data.draw(drawn_params(WIDE))
    storage: Any = data.draw(st.sampled_from([DType.I4, DType.I8, DType.U8]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    scales = rng.choice([0.5, 1e-3, 0.07, 1 / 3], (3, 4)).astype(np.float32)
    zeros = rng.integers(storage.low, storage.high + 1, (3, 4))
    b = QuantParams(storage=storage, scale=scales, zero_point=zeros, axis=0, block=4)
    matrix = rng.integers(storage.low, storage.high + 1, (10, 4)).astype(storage.numpy)
    codes = data.draw(drawn_codes(a, (2, 10)))
    left = reals(codes, a)
    real = [
        sum(
            (left[10 * row + k] * (int(matrix[k, n]) - int(zeros[k // 4, n]))
             * Fraction(float(scales[k // 4, n])) for k in range(10)),
            Fraction(0),
        )
        for row, n in product(range(2), range(4))
    ]  # fmt: skip
    largest = float(max(map(abs, real))) or 1.0
    out = data.draw(drawn_params(NARROW, st.sampled_from([largest / 255, largest / 20])))
    operands = [Given(codes, a), Given(matrix, b, constant=True)]
    found = run_op(BlockedDense(out=out), operands)
    assert_near(found, real, out)
    assert_one_quantum(BlockedDense(out=out), operands, found)
