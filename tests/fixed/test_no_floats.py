"""A graph of integer operators runs without a float array under `fixed`."""

from __future__ import annotations

import numpy as np
import pytest

import intonnx
from boundaries.patterns import Pattern
from boundaries.test_boundaries import TABLE
from intonnx.ir.op import registered_ops
from support.floats import float_arrays_in

WATCHED = ("lowering", "ir")
PRODUCTS = ("conv.py", "conv_transpose.py", "dense.py", "einsum.py", "exact.py", "windows.py",
            "blocked_dense.py", "packed.py", "products.py", "epilogue.py",
            "_depthwise.py")  # fmt: skip
"""Products of whole numbers, which are exact in the BLAS: whole numbers in float arrays."""
BOUNDARIES = {"qnn.quantize", "qnn.dequantize", "qnn.dynamic_quantize"}
PATTERNS = (
    "conv-add-relu", "gemm-trans-a", "silu-with-quantizers", "squeeze-same",
    "depth-to-space-same", "conv-1d", "conv-3d", "conv-pad-before", "convtranspose",
    "matmul-batched", "matmul-blocked-int8", "sub", "div", "pow", "min", "max", "prelu", "equal",
    "max-pool", "average-pool", "global-average-pool", "global-max-pool", "reduce-mean",
    "reduce-sum",
    "reduce-min", "softmax", "log-softmax", "instance-norm", "layer-norm", "batch-norm", "lrn",
    "cumsum", "flatten-same", "unsqueeze-same", "expand-same", "tile-same", "gather-same",
    "gather-elements-same", "space-to-depth-same", "scatter-nd-same", "nearest-resize-same",
    "resize-linear-half-pixel", "resize-cubic", "split-same", "concat-same", "where", "argmax",
    "argmin", "top-k-same", "einsum-product",
)  # fmt: skip
OTHER_RANKS = {"qnn.avg_pool1d", "qnn.avg_pool3d", "qnn.conv1d_transpose", "qnn.conv3d_transpose",
               "qnn.global_avg_pool1d", "qnn.global_avg_pool3d", "qnn.max_pool1d",
               "qnn.max_pool3d"}  # fmt: skip
"""One kernel serves them and the operators of rank 4."""
SIBLINGS = {"qnn.group_norm", "qnn.rms_norm", "qnn.gather_nd", "qnn.scatter_elements",
            "qnn.identity"}  # fmt: skip
"""As instance and layer normalization; copies of codes."""
REAL_OPERAND = {"qnn.grid_sample"}
"""Its places enter this table as real values: see `test_windows`."""


def pattern(name: str) -> Pattern:
    return next(case.pattern for case in TABLE if case.pattern.name == name)


@pytest.mark.parametrize("name", PATTERNS)
def test_nothing_holds_a_float_array(name: str) -> None:
    model, draw = pattern(name).draw(np.uint8, True, 1)
    executable = intonnx.compile(intonnx.import_model(model), numerics="fixed")
    constants = executable.graph.constants.values()
    with float_arrays_in(*WATCHED, apart_from=PRODUCTS, constants=constants) as found:
        executable.run(draw.inputs)
    assert found == set()


def test_every_operator_is_watched() -> None:
    watched: set[str] = set()
    for name in PATTERNS:
        graph = intonnx.import_model(pattern(name).draw(np.uint8, True, 1)[0])
        watched |= {node.op.name for node in graph.nodes}
    known = {name for name in registered_ops() if name.startswith("qnn.")}
    assert known - watched - BOUNDARIES - OTHER_RANKS - SIBLINGS - REAL_OPERAND == set()


def test_floats_are_seen() -> None:
    model, draw = pattern("layer-norm").draw(np.uint8, True, 1)
    executable = intonnx.compile(intonnx.import_model(model))
    with float_arrays_in(*WATCHED, apart_from=PRODUCTS) as found:
        executable.run(draw.inputs)
    assert "_normalization.py normalized" in found
