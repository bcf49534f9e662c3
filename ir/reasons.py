"""Why an operator is not an integer one: the closed list of reason codes."""

from __future__ import annotations

import enum


class Code(enum.StrEnum):
    """Reason codes of the coverage report; the docstring of each is its documentation."""

    INPUT_NOT_QUANTIZED = "input-not-quantized"
    """An input arrives as float: nothing quantizes it on the way."""
    OUTPUT_NOT_QUANTIZED = "output-not-quantized"
    """The operator needs the parameters of its result, and no QuantizeLinear follows."""
    FLOAT_RESULT_USED = "float-result-used"
    """The unquantized result is also read by a float operator or is an output of the graph."""
    RUNTIME_PARAMETERS = "runtime-parameters"
    """A scale or zero point is computed at run time or may be overridden by the caller."""
    RUNTIME_CONSTANT = "runtime-constant"
    """A value that decides the arithmetic, such as a bound or an axis, is computed at run time."""
    PER_AXIS_INPUT = "per-axis-input"
    """An input has one scale per channel where the arithmetic needs a single one."""
    BLOCKED_INPUT = "blocked-input"
    """An input has blocked scales where the arithmetic needs one per tensor or per channel."""
    UNSUPPORTED_ATTRIBUTE = "unsupported-attribute"
    """The operator is integer in general, but not with this attribute or shape."""
    UNSUPPORTED_TYPE = "unsupported-type"
    """The operator is integer in general, but not for this storage or expressed type."""
    BIAS_OUT_OF_RANGE = "bias-out-of-range"
    """A bias cannot be expressed as int32 at the scale of the accumulator."""
    NO_INTEGER_FORM = "no-integer-form"
    """No rule turns this operator into integer arithmetic."""
    FLOAT_MODEL = "float-model"
    """Nothing around the operator is quantized, so there is nothing to make integer."""
