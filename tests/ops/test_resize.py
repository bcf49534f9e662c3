"""qnn.resize_nearest and qnn.resize against onnxruntime and the reference operators of onnx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.resize import Resize, ResizeNearest
from intonnx.ir.types import DType, QuantParams, plain, quantized
from support import strategies
from support.models import Array, Builder, Fed, Held, Params, qdq_model, run_inputs, s8, u8
from support.movers import CASES, check_mover, names_of
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
RNG = np.random.default_rng(0)
EMPTY = Held(np.zeros(0, np.float32))
COORDINATES = [
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
]  # fmt: skip
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
FACTORS = [0.5, 2, 3, 1, 0.25, 1 / 3, 1.5, 2.7, 0.6, 4, 0.9]


@dataclass(frozen=True)
class Case:
    """A resize of x [1, 2, H, W] along its last axes."""

    shape: tuple[int, int, int, int]
    attrs: dict[str, Any]
    scales: list[float] | None
    sizes: list[int] | None
    region: list[float] | None
    opset: int

    @property
    def others(self) -> list[Any]:
        """The constant inputs after x, with an entry for every axis unless there are `axes`."""
        whole = "axes" not in self.attrs
        if self.scales is not None:
            scales = [1.0, 1.0, *self.scales] if whole else self.scales
            return [EMPTY, Held(np.asarray(scales, np.float32))]
        assert self.sizes is not None
        sizes = [1, 2, *self.sizes] if whole else self.sizes
        roi = EMPTY
        if self.region is not None:
            starts, ends = self.region[:2], self.region[2:]
            parts = [[0.0, 0.0, *starts, 1.0, 1.0, *ends], [*starts, *ends]]
            roi = Held(np.asarray(parts[0] if whole else parts[1], np.float32))
        return [roi, EMPTY if self.opset < 13 else None, Held(np.asarray(sizes))]

    def model(self, x: Params, out: Params, quantized_input: bool = True) -> onnx.ModelProto:
        fed = Fed("x", self.shape, x, quantized=quantized_input)
        return qdq_model("Resize", [fed, *self.others], out=out, attrs=self.attrs, opset=self.opset)


@st.composite
def cases(draw: st.DrawFn, *modes: str) -> Case:
    """Every coordinate mode, scales or sizes, axes, policies and crops."""
    mode, opset = draw(st.sampled_from(modes)), draw(st.sampled_from([11, 13, 18, 19, 22]))
    known = COORDINATES if opset >= 19 else [c for c in COORDINATES if "symmetric" not in c]
    if opset == 11:
        known = [*known, "tf_half_pixel_for_nn"]
    shape = (1, 2, draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    attrs: dict[str, Any] = {"mode": mode}
    attrs["coordinate_transformation_mode"] = draw(st.sampled_from(known))
    if mode == "nearest":
        attrs["nearest_mode"] = draw(st.sampled_from(NEAREST))
    if mode == "cubic":
        attrs["cubic_coeff_a"] = draw(st.sampled_from([-0.75, -0.5]))
        attrs["exclude_outside"] = draw(st.integers(0, 1))
    if opset >= 18 and draw(st.booleans()):
        attrs["axes"] = draw(st.sampled_from([[2, 3], [-2, -1]]))
    if draw(st.booleans()):
        factors = st.sampled_from(FACTORS)
        scales = [draw(factors.filter(lambda f, n=n: int(f * n) > 0)) for n in shape[2:]]
        return Case(shape, attrs, scales, None, None, opset)
    sizes = [draw(st.integers(1, 20)) for _ in range(2)]
    # With a policy onnxruntime leaves negative axes as they are, against the specification.
    if attrs.get("axes") == [2, 3] and draw(st.booleans()):
        attrs["keep_aspect_ratio_policy"] = draw(st.sampled_from(["not_larger", "not_smaller"]))
    return Case(shape, attrs, None, sizes, None, opset)


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "changes", "x"),
    [
        ("C1", {"axes": (2, 4)}, quantized(U8, [1, 2, 5, 5])),
        ("C1", {"axes": (2, 2)}, quantized(U8, [1, 2, 5, 5])),
        ("C1", {"axes": (-1, 2)}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"sizes": (3, 3)}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"scales": None}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"scales": (2.0,)}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"scales": (2.0, 0.0)}, quantized(U8, [1, 2, 5, 5])),
        ("C3", {}, quantized(QuantParams(storage="u8", scale=[1, 2], zero_point=[0, 0], axis=3),
                             [1, 2, 5, 2])),
    ],
)  # fmt: skip
def test_constraints_of_both(constraint: str, changes: dict[str, Any], x: Any) -> None:
    fields: dict[str, Any] = {"axes": (2, 3), "scales": (2.0, 2.0), **changes}
    for op in (ResizeNearest(**fields), Resize(**fields, out=U8)):
        with pytest.raises(TypeFailure) as failure:
            op.infer([x])
        assert failure.value.constraint == constraint


def test_constraints_of_each() -> None:
    fields: dict[str, Any] = {"axes": (1,), "scales": (2.0,)}
    x = quantized(U8, [1, 2])
    crop = {"coordinates": "tf_crop_and_resize"}
    per_axis = QuantParams(storage="u8", scale=[1, 2], zero_point=[0, 0], axis=1)
    wide = QuantParams(storage="i32", scale=1, zero_point=0)
    for op, kind, constraint in [
        (ResizeNearest(**fields, **crop), x, "C4"),
        (Resize(**fields, out=U8), plain(DType.U8, [1, 2]), "C3"),
        (Resize(**fields, **crop, out=U8), x, "C4"),
        (Resize(**fields, **crop, region=(0.0, 1.0, 1.0), out=U8), x, "C4"),
        (Resize(**fields, region=(0.0, 1.0), out=U8), x, "C4"),
        (Resize(**fields, out=per_axis), x, "C5"),
        (Resize(**fields, out=wide), x, "C5"),
    ]:
        with pytest.raises(TypeFailure) as failure:
            op.infer([kind])
        assert failure.value.constraint == constraint


def test_sizes_of_the_result() -> None:
    def shape_of(shape: list[int | str], **fields: Any) -> Any:
        return ResizeNearest(**fields).infer([plain(DType.U8, shape)])[0].shape

    assert shape_of(["N", 5], axes=(1,), scales=(1.5,)) == ("N", 7)
    assert shape_of(["N", "W"], axes=(0, 1), scales=(1.0, 2.0)) == ("N", "?")
    assert shape_of(["N", "W"], axes=(1,), sizes=(9,)) == ("N", 9)
    kept = {"axes": (0, 1), "sizes": (8, 8)}
    assert shape_of([2, 3], **kept, policy="not_larger") == (5, 8)
    assert shape_of([2, 3], **kept, policy="not_smaller") == (8, 12)
    assert shape_of([2, "W"], **kept, policy="not_smaller") == ("?", "?")


# -- nearest --------------------------------------------------------------------------------------


@settings(max_examples=70)
@given(cases("nearest"), strategies.params(), st.integers(0, 99), st.booleans())
def test_nearest_is_onnxruntime_to_the_last_code(
    case: Case, params: Params, seed: int, fed_codes: bool
) -> None:
    model = case.model(params, params, fed_codes)
    graph = check_model(model, run_inputs(model, seed), quanta=0)
    assert not {"qnn.requantize", "qnn.lut"} & set(names_of(graph))


@pytest.mark.parametrize("opset", [11, 13, 18, 22])
def test_nearest_of_every_type_and_with_other_parameters(opset: int) -> None:
    for params, out, fed_codes in CASES:
        if np.dtype(params.dtype).itemsize == 2 and opset < 21:
            continue
        x = Fed("x", (2, 3, 4, 5), params, quantized=fed_codes)
        scales = Held(np.asarray([1, 1, 2, 0.7], np.float32))
        model = qdq_model("Resize", [x, EMPTY, scales], out=out, opset=opset)
        check_model(model, run_inputs(model), quanta=0)


def test_nearest_as_a_mover() -> None:
    check_mover("Resize", (2, 3, 4), [np.zeros(0, np.float32), np.asarray([1, 1, 2], np.float32)])


@pytest.mark.parametrize("scales", [[2, 3], [0.5, 0.4], [2, 0.5], [1, 0.3]])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_opset_10(scales: list[float], mode: str) -> None:
    x = Fed("x", (1, 2, 7, 6), u8(0.1, 9), quantized=True)
    values = Held(np.asarray([1, 1, *scales], np.float32))
    model = qdq_model("Resize", [x, values], out=u8(0.1, 9), attrs={"mode": mode}, opset=10)
    quanta = 0 if mode == "nearest" else 1
    check_model(model, run_inputs(model), quanta=quanta, literal_quanta=quanta, export_quanta=1)


def test_shrinking_and_growing_axes_of_unknown_size_at_opset_10() -> None:
    x = Fed("x", (1, 2, "H", "W"), u8(0.1, 9), quantized=True)
    values = Held(np.asarray([1, 1, 2, 0.4], np.float32))
    model = qdq_model("Resize", [x, values], out=u8(0.1, 9), opset=10)
    graph = intonnx.import_model(model)
    codes = RNG.integers(0, 256, (1, 2, 7, 6)).astype(np.uint8)
    wanted = run_onnxruntime(model, {"x": codes}, optimized=False)
    apart(intonnx.compile(graph).run({"x": codes}), wanted, 0)
    with pytest.raises(intonnx.ExportFailure, match="not known"):
        intonnx.to_onnx(graph)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("by_size", [False, True])
def test_sizes_that_are_known_at_run_time_only(mode: str, by_size: bool) -> None:
    x = Fed("x", ("N", 2, "H", "W"), u8(0.1, 9), quantized=True)
    target = [None, Held(np.asarray([9, 5]))] if by_size else [
        Held(np.asarray([2.5, 0.6], np.float32))
    ]  # fmt: skip
    attrs = {"mode": mode, "axes": [2, 3]}
    model = qdq_model("Resize", [x, None, *target], out=u8(0.1, 9), attrs=attrs)
    codes = RNG.integers(0, 256, (1, 2, 7, 6)).astype(np.uint8)
    quanta = 0 if mode == "nearest" else 1
    check_model(model, {"x": codes}, quanta=quanta, literal_quanta=quanta, export_quanta=quanta)


def test_nearest_lifts_the_quantizer_to_what_is_before_it() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 3, 4, 4), u8(0.02, 128)), 0)
    w = build.operand(Held(RNG.integers(-128, 128, (4, 3, 3, 3)), s8(0.01)), 1)
    scales = build.constant("scales", np.asarray([1, 1, 2, 2], np.float32))
    real = build.node("Resize", [build.node("Conv", [x, w]), "", scales])
    build.output(build.quantize(real, u8(0.05, 9), "y"), np.uint8)
    model = build.model()
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert names_of(graph)[-2:] == ["qnn.requantize", "qnn.resize_nearest"]


# -- linear and cubic -----------------------------------------------------------------------------


@settings(max_examples=70)
@given(
    cases("linear", "cubic"),
    strategies.params(),
    strategies.params(),
    st.integers(0, 99),
    st.booleans(),
)
def test_interpolation_is_within_a_quantum(
    case: Case, params: Params, out: Params, seed: int, fed_codes: bool
) -> None:
    model = case.model(params, out, fed_codes)
    check_model(model, run_inputs(model, seed), literal_quanta=1, export_quanta=1)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("shape", [(5,), (4, 3, 5), (2, 3, 4, 2, 3)])
def test_any_rank_is_the_reference_operator(
    mode: str, coordinates: str, shape: tuple[int, ...]
) -> None:
    """onnxruntime has no kernel for many of these.

    Sizes, as the reference aligns the corners of the size before it is rounded down.
    """
    sizes = Held(np.asarray([8, 2, 7, 2, 9][: len(shape)]))
    attrs = {"mode": mode, "coordinate_transformation_mode": coordinates}
    x = Fed("x", shape, u8(0.02, 9), quantized=True)
    model = qdq_model("Resize", [x, None, None, sizes], out=u8(0.01, 30), attrs=attrs)
    codes = RNG.integers(0, 256, shape).astype(np.uint8)
    wanted = ReferenceEvaluator(model).run(None, {"x": codes})
    found = intonnx.compile(intonnx.import_model(model)).run({"x": codes})
    apart(found, dict(zip(found, wanted, strict=True)), 1)  # type: ignore[arg-type]


def test_the_mean_is_rounded_half_to_even() -> None:
    x = Fed("x", (1, 1, 1, 6), u8(0.25), quantized=True)
    attrs = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    sizes = Held(np.asarray([1, 1, 1, 11]))
    model = qdq_model("Resize", [x, None, None, sizes], out=u8(0.25), attrs=attrs)
    codes = np.asarray([0, 1, 2, 5, 5, 255], np.uint8).reshape(1, 1, 1, 6)
    graph = check_model(model, {"x": codes}, quanta=0)
    found = intonnx.compile(graph).run({"x": codes})["y"]
    assert found.ravel().tolist() == [0, 0, 1, 2, 2, 4, 5, 5, 5, 130, 255]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("axes", [None, [2, 3]])
@pytest.mark.parametrize("region", [[0.1, 0.2, 0.9, 0.6], [0, 0, 1, 1], [-0.5, 0.7, 0.3, 1.7]])
def test_crops(mode: str, axes: list[int] | None, region: list[float]) -> None:
    attrs: dict[str, Any] = {
        "mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 1.73,
    }  # fmt: skip
    if axes is not None:
        attrs["axes"] = axes
    for sizes in ([5, 9], [1, 8], [20, 1]):
        case = Case((1, 2, 7, 6), attrs, None, sizes, region, 19)
        model = case.model(u8(0.02, 100), s8(0.03, -20))
        quanta = 0 if mode == "nearest" else 1
        check_model(model, run_inputs(model), quanta=quanta, literal_quanta=1, export_quanta=1)


def interpolated(x: Fed, out: Params | None = None, **attrs: Any) -> onnx.ModelProto:
    scales = Held(np.asarray([1, 1, 2, 2], np.float32))
    return qdq_model("Resize", [x, EMPTY, scales], out=out, attrs={"mode": "linear", **attrs})


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
@pytest.mark.parametrize("out", [u8(0.3, 3), Params(np.int16, 0.002, 5)])
def test_16_bit_codes_and_scales_for_each_channel(dtype: type, out: Params) -> None:
    model = interpolated(Fed("x", (1, 2, 4, 5), Params(dtype, 0.001, 77)), out)
    check_model(model, run_inputs(model), literal_quanta=1, export_quanta=1)
    model = interpolated(Fed("x", (1, 2, 4, 5), u8([0.02, 0.5], [3, 200], axis=1)), out)
    check_model(model, run_inputs(model), literal_quanta=1, export_quanta=1)


@pytest.mark.parametrize("per_channel", [False, True])
def test_of_an_accumulator(per_channel: bool) -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 3, 4, 4), u8(0.02, 128)), 0)
    params = s8([0.01, 0.02], axis=0) if per_channel else s8(0.01)
    w = build.operand(Held(RNG.integers(-128, 128, (2, 3, 3, 3)), params), 1)
    scales = build.constant("scales", np.asarray([1, 1, 2, 2], np.float32))
    real = build.node("Resize", [build.node("Conv", [x, w]), "", scales], mode="linear")
    build.output(build.quantize(real, u8(0.05, 99), "y"), np.uint8)
    model = build.model()
    check_model(model, run_inputs(model), literal_quanta=1, export_quanta=1)


def test_layout_is_kept() -> None:
    """A channels-last view stays one, so that convolutions after it need no copy."""
    model = interpolated(Fed("x", (1, 8, 4, 5), u8(0.02, 9), quantized=True), u8(0.02, 9))
    codes: Array = RNG.integers(0, 256, (1, 8, 4, 5)).astype(np.uint8)
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(codes, 1, -1)), -1, 1)
    executable = intonnx.compile(intonnx.import_model(model))
    apart(executable.run({"x": last}), executable.run({"x": codes}), 0)


# -- refusals -------------------------------------------------------------------------------------


def test_refusals() -> None:
    x = Fed("x", (1, 2, 4, 5), u8(0.1, 9))
    assert refusal_of(interpolated(x), "Resize")[0] == "output-not-quantized"
    assert refusal_of(interpolated(x, u8(0.1), antialias=1), "Resize")[0] == "unsupported-attribute"
    plain_x = Fed("x", (1, 2, 4, 5))
    assert refusal_of(interpolated(plain_x, u8(0.1)), "Resize")[0] == "input-not-quantized"
    per_axis = Fed("x", (1, 2, 2, 5), u8([0.1, 0.2], [1, 2], axis=2))
    assert refusal_of(interpolated(per_axis, u8(0.1)), "Resize")[0] == "unsupported-attribute"
    computed = Fed("sizes", (4,), dtype=np.int64)
    model = qdq_model("Resize", [x, None, None, computed], out=u8(0.1))
    assert refusal_of(model, "Resize")[0] == "runtime-constant"
    # onnxruntime does not crop an axis that keeps its size.
    attrs = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    model = Case((1, 2, 4, 5), attrs, None, [4, 9], [0.1, 0.0, 1, 1], 19).model(u8(1), u8(1))
    assert refusal_of(model, "Resize")[0] == "unsupported-attribute"
