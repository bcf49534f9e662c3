"""The reference of all operators, from their classes.

`python -m intonnx.ir.operator_page` prints the page docs/operators.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from .op import Op, registered_ops
from .ops.onnx_op import OnnxOp
from .types import QuantParams

_TYPE_WORDS = re.compile(r"\b(?:intonnx\.)?(?:ir\.)?(?:types\.|ops\.\w+\.|dtypes\.)?(\w+)")


def operators_page() -> str:
    """The documentation of all operators as Markdown."""
    lines = [
        "# Operators",
        "",
        "The operators of the IR. This page is generated from the classes in `ir/ops`:",
        "`python -m intonnx.ir.operator_page > docs/operators.md`.",
        "",
        "Codes are integers with the quantization parameters in their type; an accumulator is an",
        "i32 whose scale is the product of the scales of its operands. An operand with `?` may be",
        "absent, one with `*` stands for any number. Numbered constraints are what a `TypeFailure`",
        "names. What the IR does not model stays as `onnx.<Op>`, with the attributes that it has.",
    ]
    for name, op in sorted(registered_ops().items()):
        if op is not OnnxOp:
            lines += ["", f"## {name}", *_section(op)]
    return "\n".join(lines) + "\n"


def _section(op: type[Op]) -> Iterator[str]:
    """What the class says: its text, operands, attributes and constraints."""
    attributes = [
        f"`{name}`: {_type_of(field)}{_default_of(field)}"
        for name, field in op.model_fields.items()
        if name != "out"
    ]
    yield ""
    yield f"`{op.name}({', '.join(op.signature)})`, kind: {op.kind}"
    yield ""
    yield from _paragraphs(_text(op))
    if attributes:
        yield ""
        yield "Types and defaults: " + "; ".join(attributes) + "."
    if "out" in op.model_fields:
        yield ""
        yield "The parameters of the result, `out`, stand in its type in the text form."


def _text(op: type[Op]) -> str:
    """The docstring; one that says "See `Base`" is followed by that of the base."""
    text = inspect.getdoc(op) or ""
    seen = re.match(r"See `(\w+)`", text)
    base = next((c for c in op.__mro__[1:] if seen and c.__name__ == seen[1]), None)
    return text if base is None else f"{text}\n\n{inspect.getdoc(base) or ''}"


def _paragraphs(text: str) -> Iterator[str]:
    """A docstring as Markdown: its list of constraints becomes a list, `Attributes` another."""
    for line in text.splitlines():
        entry = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if re.fullmatch(r"\w+:", line):
            yield line
            yield ""
        elif entry is not None:
            yield f"- `{entry[1]}`: {entry[2]}"
        elif line.startswith("     "):
            yield f"  {line.strip()}"
        else:
            yield line


def _type_of(field: FieldInfo) -> str:
    kind: Any = field.annotation
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    text = _TYPE_WORDS.sub(r"\1", text.replace("typing.", "").replace("collections.abc.", ""))
    return "parameters" if kind is QuantParams else f"`{text}`"


def _default_of(field: FieldInfo) -> str:
    return "" if field.is_required() else f" = `{field.default}`"


if __name__ == "__main__":
    print(operators_page(), end="")
