"""qnn.reshape, flatten, squeeze and unsqueeze: constraints and result types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.reshape import Flatten, Reshape, Squeeze, Unsqueeze
from intonnx.ir.shapes import kept_axis
from intonnx.ir.types import DType, plain
from support.movers import blocked, kind, shape_of

COMPUTED = plain(DType.I64, (2,))


def test_reshape_c1_one_target() -> None:
    with pytest.raises(TypeFailure, match=r"qnn\.reshape C1"):
        Reshape().infer([kind((2, 3))])
    with pytest.raises(TypeFailure, match="C1"):
        Reshape(shape=(6,)).infer([kind((2, 3)), COMPUTED])


@pytest.mark.parametrize("shape", [(-1, -1), (-2, 3), (2, 3, 0), (0, 0, 0)])
def test_reshape_c2_a_target_that_says_nothing(shape: tuple[int, ...]) -> None:
    with pytest.raises(TypeFailure, match="C2"):
        Reshape(shape=shape).infer([kind((2, 3))])


def test_reshape_c2_allowzero_leaves_minus_one_open() -> None:
    with pytest.raises(TypeFailure, match="C2"):
        Reshape(shape=(0, -1), allowzero=True).infer([kind((0, 3))])


@pytest.mark.parametrize("shape", [(7,), (4, -1), (0, 4), (6, 0)])
def test_reshape_c3_as_many_elements(shape: tuple[int, ...]) -> None:
    with pytest.raises(TypeFailure, match="C3"):
        Reshape(shape=shape).infer([kind((2, 3))])


def test_reshape_c4_the_computed_target() -> None:
    for bad in (plain(DType.F32, (2,)), plain(DType.I64, (2, 1))):
        with pytest.raises(TypeFailure, match="C4"):
            Reshape().infer([kind((2, 3)), bad])


def test_reshape_c5_parameters_along_an_axis_that_goes() -> None:
    x = kind((2, 3, 4), axis=1, n=3)
    for op, operands in ((Reshape(shape=(6, 4)), [x]), (Reshape(), [x, COMPUTED])):
        with pytest.raises(TypeFailure, match="C5"):
            op.infer(operands)
    with pytest.raises(TypeFailure, match="C5"):
        Reshape(shape=(24,)).infer([blocked((2, 3, 4), 1, 2)])


def test_flatten_c1_the_axis() -> None:
    for axis in (-4, 4):
        with pytest.raises(TypeFailure, match=r"qnn\.flatten C1"):
            Flatten(axis=axis).infer([kind((2, 3, 4))])


def test_flatten_c2_parameters_along_an_axis_that_goes() -> None:
    with pytest.raises(TypeFailure, match=r"qnn\.flatten C2"):
        Flatten(axis=1).infer([kind((2, 3, 4), axis=1, n=3)])


def test_squeeze_c1_the_axes() -> None:
    for axes in ((3,), (-4,), (0, -3)):
        with pytest.raises(TypeFailure, match=r"qnn\.squeeze C1"):
            Squeeze(axes=axes).infer([kind((1, 3, 1))])


def test_squeeze_c2_the_axes_have_one_element() -> None:
    with pytest.raises(TypeFailure, match=r"qnn\.squeeze C2"):
        Squeeze(axes=(1,)).infer([kind((1, 3, 1))])


def test_squeeze_c3_per_axis_and_blocked() -> None:
    with pytest.raises(TypeFailure, match=r"qnn\.squeeze C3"):
        Squeeze().infer([kind(("N", 3, 1), axis=1, n=3)])
    with pytest.raises(TypeFailure, match=r"qnn\.squeeze C3"):
        Squeeze(axes=(0,)).infer([blocked((1, 3), 0, 2)])


def test_unsqueeze_c1_the_axes() -> None:
    for axes in ((3,), (-4,), (0, -3)):
        with pytest.raises(TypeFailure, match=r"qnn\.unsqueeze C1"):
            Unsqueeze(axes=axes).infer([kind((2,))])


def test_unsqueeze_c2_per_axis_codes_of_unknown_rank() -> None:
    with pytest.raises(TypeFailure, match=r"qnn\.unsqueeze C2"):
        Unsqueeze(axes=(0,)).infer([kind(None, axis=1, n=3)])


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        (("N", 3, 4), (0, -1), ("N", 12)),
        (("N", 3, 4), (-1, 12), ("N", 12)),
        (("N", 3, 4), (-1, 6), ("?", 6)),
        (("N", "M", 4), (0, 0, 2, -1), ("N", "M", 2, 2)),
        (("?", 3, 4), (0, -1), ("?", 12)),
        (("N", "M"), (0, -1), ("N", "M")),
        (("N", "M"), (-1,), ("?",)),
        (("N", 3), (2, 3), (2, 3)),
        ((0, 3), (0, -1), (0, 3)),
        ((0, 3), (0, 5), (0, 5)),
        ((), (1, -1), (1, 1)),
        ((1, 1), (), ()),
        (None, (0, -1, 3), ("?", "?", 3)),
    ],
)
def test_the_result_shape_of_a_reshape(before: Any, target: Any, after: Any) -> None:
    assert shape_of(Reshape(shape=target), kind(before)) == after


def test_the_result_shapes_of_the_others() -> None:
    assert shape_of(Reshape(), kind(("N", 3)), COMPUTED) == ("?", "?")
    assert shape_of(Reshape(), kind(("N", 3)), plain(DType.I64, None)) is None
    assert shape_of(Reshape(shape=(0, 3), allowzero=True), kind((0, 5))) == (0, 3)
    assert shape_of(Flatten(), kind(("N", 3, 1, 1))) == ("N", 3)
    assert shape_of(Flatten(axis=-1), kind(("N", 3, 4))) == ("?", 4)
    assert shape_of(Flatten(axis=0), kind((2, 3))) == (1, 6)
    assert shape_of(Flatten(), kind(None)) == ("?", "?")
    assert shape_of(Squeeze(axes=(-1, 0)), kind(("N", 3, 1))) == (3,)
    assert shape_of(Squeeze(), kind((1, 3, 1))) == (3,)
    assert shape_of(Squeeze(), kind(("N", 3, 1))) is None
    assert shape_of(Squeeze(axes=(0,)), kind(None)) is None
    assert shape_of(Unsqueeze(axes=(-1, 0)), kind(("N", 3))) == (1, "N", 3, 1)
    assert shape_of(Unsqueeze(axes=(-1,)), kind(None)) is None


@st.composite
def factorized(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of the same number of elements, made by joining neighbours of one list."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 2]), min_size=1, max_size=5))

    def joined() -> tuple[int, ...]:
        groups: list[int] = [sizes[0]]
        for size in sizes[1:]:
            if draw(st.booleans()):
                groups.append(size)
            else:
                groups[-1] *= size
        return tuple(groups)

    return joined(), joined()


@given(factorized())
def test_a_kept_axis_has_the_same_index_for_every_element(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    before, after = shapes
    for axis, size in enumerate(before):
        index = np.broadcast_to(
            np.arange(size).reshape([-1 if i == axis else 1 for i in range(len(before))]), before
        ).reshape(after)
        found = kept_axis(before, after, axis)
        whole = [
            candidate
            for candidate in range(len(after))
            if after[candidate] == size
            and (np.moveaxis(index, candidate, -1) == np.arange(size)).all()
        ]
        assert found in whole if whole else found is None


def test_blocked_parameters_follow_new_axes() -> None:
    x = blocked((2, 6), 1, 3)
    (moved,) = Unsqueeze(axes=(0, -1)).infer([x])
    assert (moved.params.scale.shape, moved.params.axis) == ((1, 2, 2, 1), 2)
    (back,) = Squeeze(axes=(0, 3)).infer([moved])
    assert back == x


def test_one_scale_along_a_squeezed_axis_is_per_tensor() -> None:
    (moved,) = Squeeze(axes=(0,)).infer([kind((1, 3), axis=0, n=1)])
    assert moved.params.per_tensor
