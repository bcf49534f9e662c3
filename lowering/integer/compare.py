"""Comparisons: tables of every pair of 8-bit codes, else of the real values."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.compare import Compare, Relation

from ._binary import CodesFunction, real_kernel
from ._fixed_compare import fixed_compare
from .kernel import Context, Kernel, kernels

_FUNCTIONS: dict[Relation, CodesFunction] = {
    "equal": np.equal,
    "less": np.less,
    "less_or_equal": np.less_equal,
    "greater": np.greater,
    "greater_or_equal": np.greater_equal,
}


@kernels.register(Compare)
def compare(op: Compare, context: Context) -> Kernel:
    """Whatever the numerics, the real values decide."""
    if context.numerics == "fixed":
        return fixed_compare(_FUNCTIONS[op.relation], context)
    return real_kernel(_FUNCTIONS[op.relation], context)
