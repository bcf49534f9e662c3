"""Hold the integer execution of a model against other executions, operator by operator.

Codes that differ by one quantum in an early layer may differ by many after ten more layers, so a
limit on the outputs would have to grow with the depth. Here every operator is fed the operand
values of the *reference* and only its own result is compared: "at most one quantum" then is a
statement about each operator, whatever the depth. How far the outputs lie apart when each side
uses its own values is reported beside it, and judged only where the two must be equal.

The references:

    literal     the literal meaning of the quantized model (numerics "qdq"): dequantize, the real
                operator, quantize
    original    onnxruntime on the model as it is, with optimization off; and with optimization
                on, outputs only, for information
    export      onnxruntime on the graph that `to_onnx` writes, with optimization off: equal bit
                for bit, except where no QLinear kernel exists and the export has DQ -> op -> Q
    optimized   the same graph with optimization on, outputs only, for information

Of codes that differ it is said how many are ties: half way between two codes, where each is right.

A quantum is one code. For dequantized codes it is their scale; other floats, made by operators
that stayed float, are compared relative to the largest magnitude of the reference's tensor.
"""

from __future__ import annotations

from .compare import Comparison, Verification, verify_graph
from .difference import Difference
from .float_model import FloatComparison, Layer, compare_with_float
from .references import Against
from .sampling import random_inputs

__all__ = [
    "Against",
    "Comparison",
    "Difference",
    "FloatComparison",
    "Layer",
    "Verification",
    "compare_with_float",
    "random_inputs",
    "verify_graph",
]
