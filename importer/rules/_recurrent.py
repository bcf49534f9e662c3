"""DynamicQuantizeLSTM: kept as it is, since every step quantizes what the step before it gave."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.registry import imports
from intonnx.ir.graph import Refusal
from intonnx.ir.reasons import Code


@imports("DynamicQuantizeLSTM", since=1, domain="com.microsoft")
def dynamic_quantize_lstm(node: NodeView) -> None:
    """DynamicQuantizeLSTM: a kept operator, which `lowering.contrib_ops` runs."""
    detail = (
        f"{node.label} multiplies integers inside, but its gates are float and its scales are "
        "known at run time, one step after the other"
    )
    node.keep(Refusal(code=Code.NO_INTEGER_FORM, detail=detail))
