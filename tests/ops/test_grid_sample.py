"""qnn.grid_sample against onnxruntime and against cells picked by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.grid_sample import GridSample
from intonnx.ir.types import DType, QuantParams, plain, quantized
from support import strategies
from support.models import Array, Fed, Held, Params, qdq_model, run_inputs, s8, u8
from support.wings import check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
OLD = {"linear": "bilinear", "cubic": "bicubic"}


@dataclass(frozen=True)
class Case:
    """x [2, C, *D], a grid, and the attributes; `grid_params` make the grid quantized."""

    shape: tuple[int, ...]
    grid: Array
    grid_params: Params | None
    mode: str
    padding: str
    align_corners: int
    opset: int

    def model(self, x: Params, out: Params, quantized_input: bool = True) -> onnx.ModelProto:
        fed = Fed("x", self.shape, x, quantized=quantized_input)
        grid = Fed("grid", self.grid.shape, self.grid_params, quantized=True)
        attrs = {
            "mode": OLD.get(self.mode, self.mode) if self.opset < 20 else self.mode,
            "padding_mode": self.padding,
            "align_corners": self.align_corners,
        }
        return qdq_model("GridSample", [fed, grid], out=out, attrs=attrs, opset=self.opset)


@st.composite
def cases(draw: st.DrawFn, *modes: str) -> Case:
    """Places inside, at the borders, in the middle between cells, and far outside."""
    mode, opset = draw(st.sampled_from(modes)), draw(st.sampled_from([16, 20, 22]))
    n = 3 if opset >= 20 and mode != "cubic" and draw(st.booleans()) else 2
    shape = (2, 3, *(draw(st.integers(1, 5)) for _ in range(n)))
    to = (2, *(draw(st.integers(1, 5)) for _ in range(n)), n)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    params = s8(1 / 64, 3) if draw(st.booleans()) else None
    if params is not None:
        grid: Array = rng.integers(-128, 128, to).astype(np.int8)
    else:
        grid = rng.uniform(-1, 1, to) * draw(st.sampled_from([1.0, 1.4, 9.0]))
        if draw(st.booleans()):
            grid = np.round(grid * 4) / 4
        grid = grid.astype(np.float32)
    padding = draw(st.sampled_from(["zeros", "border", "reflection"]))
    return Case(shape, grid, params, mode, padding, draw(st.integers(0, 1)), opset)


def check(case: Case, x: Params, out: Params, seed: int, fed_codes: bool, quanta: int) -> None:
    model = case.model(x, out, fed_codes)
    inputs = {**run_inputs(model, seed), "grid": case.grid}
    check_model(model, inputs, quanta=quanta, literal_quanta=quanta, export_quanta=quanta)


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "changes", "x", "grid"),
    [
        ("C1", {}, quantized(U8, [1, 2, 5]), plain(DType.F32, [1, 4, 1])),
        ("C1", {}, quantized(U8, [1, 2, 5, 5]), plain(DType.F32, [1, 4, 4, 3])),
        ("C1", {}, quantized(U8, [1, 2, 5, 5]), plain(DType.F32, [2, 4, 4, 2])),
        ("C1", {"mode": "cubic"}, quantized(U8, [1, 2, 5, 5, 5]),
         plain(DType.F32, [1, 4, 4, 4, 3])),
        ("C2", {}, plain(DType.U8, [1, 2, 5, 5]), plain(DType.F32, [1, 4, 4, 2])),
        ("C2", {}, quantized(QuantParams(storage="i32", scale=1, zero_point=0), [1, 2, 5, 5]),
         plain(DType.F32, [1, 4, 4, 2])),
        ("C3", {}, quantized(U8, [1, 2, 5, 5]), plain(DType.F16, [1, 4, 4, 2])),
        ("C4", {"out": QuantParams(storage="u8", scale=[1, 2], zero_point=[0, 0], axis=1)},
         quantized(U8, [1, 2, 5, 5]), plain(DType.F32, [1, 4, 4, 2])),
    ],
)  # fmt: skip
def test_constraints(constraint: str, changes: dict[str, Any], x: Any, grid: Any) -> None:
    with pytest.raises(TypeFailure) as failure:
        GridSample(**{"out": U8, **changes}).infer([x, grid])
    assert failure.value.constraint == constraint


def test_the_type_of_the_result() -> None:
    def shape_of(x: list[int | str], grid: list[int | str]) -> Any:
        return GridSample(out=U8).infer([quantized(U8, x), plain(DType.F32, grid)])[0].shape

    assert shape_of(["N", 2, 5, 5], ["?", 4, "W", 2]) == ("N", 2, 4, "W")
    assert shape_of(["N", 2, 5, 5], [3, 4, 4, 2]) == (3, 2, 4, 4)
    assert shape_of(["?", 2, 5, 5], ["?", 4, 4, "?"]) == ("?", 2, 4, 4)


# -- values ---------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    cases("nearest"),
    strategies.params(wide=True),
    strategies.params(wide=True),
    st.integers(0, 99),
    st.booleans(),
)
def test_nearest_is_onnxruntime_to_the_last_code(
    case: Case, x: Params, out: Params, seed: int, fed_codes: bool
) -> None:
    if np.dtype(x.dtype).itemsize == 2 or np.dtype(out.dtype).itemsize == 2:
        case = Case(**{**vars(case), "opset": 22})
    check(case, x, out, seed, fed_codes, quanta=0)


@settings(max_examples=80)
@given(
    cases("linear", "cubic"),
    strategies.params(),
    strategies.params(),
    st.integers(0, 99),
    st.booleans(),
)
def test_interpolation_is_within_a_quantum(
    case: Case, x: Params, out: Params, seed: int, fed_codes: bool
) -> None:
    check(case, x, out, seed, fed_codes, quanta=1)


def test_places_picked_by_hand() -> None:
    """-1 and 1 are the middles of the first and the last cell; halves are rounded to even."""
    places = [(-1, -1), (1, -1), (0, 0), (1, 1), (0.5, 1), (-3, 0), (np.nan, 0), (np.inf, -np.inf)]
    grid = np.asarray(places, np.float32).reshape(1, 1, len(places), 2)
    case = Case((1, 1, 3, 3), grid, None, "linear", "zeros", 1, 22)
    graph = intonnx.import_model(case.model(u8(0.25, 10), u8(0.25, 10)))
    codes = np.asarray([[10, 20, 30], [40, 51, 60], [70, 81, 90]], np.uint8).reshape(1, 1, 3, 3)
    found = intonnx.compile(graph).run({"x": codes, "grid": grid})["y"]
    assert found.ravel().tolist() == [10, 30, 51, 90, 86, 10, 10, 10]


def test_a_constant_grid_and_sizes_that_are_not_known() -> None:
    x = Fed("x", ("N", 2, "H", "W"), u8(0.1, 9), quantized=True)
    grid = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4, 2))
    codes = np.random.default_rng(0).integers(0, 256, (2, 2, 5, 6)).astype(np.uint8)
    constants = [Held(grid.astype(np.float32)), Held(np.rint(grid * 100), s8(0.01))]
    for constant in constants:
        model = qdq_model("GridSample", [x, constant], out=s8(0.2, 9))
        check_model(model, {"x": codes}, literal_quanta=1, export_quanta=1)


# -- refusals -------------------------------------------------------------------------------------


def test_refusals() -> None:
    x, grid = Fed("x", (1, 2, 4, 5), u8(0.1, 9)), Fed("grid", (1, 3, 3, 2))
    assert refusal_of(qdq_model("GridSample", [x, grid]), "GridSample")[0] == "output-not-quantized"
    model = qdq_model("GridSample", [Fed("x", (1, 2, 4, 5)), grid], out=u8(0.1))
    assert refusal_of(model, "GridSample")[0] == "input-not-quantized"
    per_axis = Fed("x", (1, 2, 4, 5), u8([0.1, 0.2], [1, 2], axis=1))
    model = qdq_model("GridSample", [per_axis, grid], out=u8(0.1))
    assert refusal_of(model, "GridSample")[0] == "per-axis-input"
    model = qdq_model("GridSample", [x, grid], out=u8([0.1, 0.2], [1, 2], axis=1))
    assert refusal_of(model, "GridSample")[0] == "unsupported-attribute"
