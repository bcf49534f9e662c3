"""Split: views."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from intonnx.ir.errors import RunFailure, TypeFailure
from intonnx.ir.ops.split import Split
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels


@kernels.register(Split)
def split(op: Split, context: Context) -> Kernel:
    """One view for each part; nothing is copied."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        try:
            ends = list(accumulate(op.sizes_of(x.shape[op.axis])))
        except TypeFailure as failure:
            raise RunFailure(failure.cause) from None
        return tuple(np.split(x, ends[:-1], axis=op.axis))

    return run
