"""Why an operator is not an integer one: the closed list of reason codes.

`python -m intonnx.ir.reasons` prints the page docs/reason-codes.md.
"""

from __future__ import annotations

import enum
from typing import Self


class Code(enum.StrEnum):
    """Reason codes of the coverage report.

    Attributes:
        meaning: what was found.
        remedy: what the author of the model can change.
    """

    meaning: str
    remedy: str

    def __new__(cls, value: str, meaning: str, remedy: str) -> Self:
        """A code that knows its documentation."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        member.remedy = remedy
        return member

    INPUT_NOT_QUANTIZED = (
        "input-not-quantized",
        "An input arrives as float: nothing quantizes it on the way.",
        "Put QuantizeLinear -> DequantizeLinear before it, or give constant weights as a "
        "DequantizeLinear of integers.",
    )
    OUTPUT_NOT_QUANTIZED = (
        "output-not-quantized",
        "The operator needs the quantization parameters of its result, and no QuantizeLinear "
        "follows.",
        "Put a QuantizeLinear after it.",
    )
    FLOAT_RESULT_USED = (
        "float-result-used",
        "The result is also read before it is quantized, by a float operator or as an output.",
        "Let every reader take the value after its QuantizeLinear -> DequantizeLinear.",
    )
    RUNTIME_PARAMETERS = (
        "runtime-parameters",
        "A scale or zero point is computed at run time or may be overridden by the caller.",
        "Make scale and zero point constant initializers that are not graph inputs.",
    )
    RUNTIME_CONSTANT = (
        "runtime-constant",
        "A value that decides the arithmetic, such as a bound or an axis, is computed at run time.",
        "Make it a constant.",
    )
    PER_AXIS_INPUT = (
        "per-axis-input",
        "An input has one scale for each index of an axis where the arithmetic needs a single one.",
        "Quantize it per tensor, or along the axis that the detail names.",
    )
    BLOCKED_INPUT = (
        "blocked-input",
        "An input has blocked scales where the arithmetic needs one per tensor or per channel.",
        "Quantize it per tensor or per channel.",
    )
    UNSUPPORTED_ATTRIBUTE = (
        "unsupported-attribute",
        "The operator is integer in general, but not with this attribute or shape.",
        "Use the attribute or shape that the detail names.",
    )
    UNSUPPORTED_TYPE = (
        "unsupported-type",
        "The operator is integer in general, but not for this storage or expressed type.",
        "Use an integer storage type and a float32 scale.",
    )
    BIAS_OUT_OF_RANGE = (
        "bias-out-of-range",
        "A bias cannot be expressed as int32 at the scale of the accumulator.",
        "Use larger scales of input or weights, or a smaller bias.",
    )
    NO_INTEGER_FORM = (
        "no-integer-form",
        "No rule turns this operator into integer arithmetic.",
        "Replace the operator, or leave it float between quantizers.",
    )
    FLOAT_MODEL = (
        "float-model",
        "Nothing around the operator is quantized, so there is nothing to make integer.",
        "Quantize this part of the model.",
    )


def reasons_page() -> str:
    """The documentation of all codes as Markdown."""
    lines = [
        "# Reason codes",
        "",
        "The coverage report says for every operator that stays float why. This page is generated",
        "from `ir/reasons.py`: `python -m intonnx.ir.reasons > docs/reason-codes.md`.",
        "",
        "| code | what was found | what the author of the model can change |",
        "|---|---|---|",
    ]
    lines += [f"| `{code}` | {code.meaning} | {code.remedy} |" for code in Code]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reasons_page(), end="")
