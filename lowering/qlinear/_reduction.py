"""What the emitters of reductions share: the axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .emitter import Emitter

_AXES_SINCE = 18


def reduced_axes(
    axes: Sequence[int], keepdims: bool, out: Emitter
) -> tuple[list[str], dict[str, Any]]:
    """The axes as an input (opset 18) or an attribute, and `keepdims`.

    Those of ReduceSum are an input since opset 13.
    """
    attributes: dict[str, Any] = {"keepdims": int(keepdims)}
    if out.opset >= _AXES_SINCE:
        return [out.constant(np.asarray(axes, np.int64), "axes")], attributes
    return [], {**attributes, "axes": axes}
