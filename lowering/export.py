"""Write a graph as ONNX: QLinear operators, or DQ -> op -> Q."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import onnx
from onnx import helper

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Graph

from . import qlinear
from .changes import properties_of
from .descriptions import described_value
from .explanation import InexactNode, inexact_nodes
from .limits import with_explicit_limits
from .qlinear.emitter import Emitter, Form, Runtime, tensor_proto
from .qlinear.opset import export_opset
from .qlinear.writing import write_nodes
from .shaping.pipeline import Cpu, Step, shaped

_CONTRIB_VERSION = 1


@dataclass(frozen=True)
class Export:
    """An exported model.

    Attributes:
        model: the ONNX model.
        steps: what shaped the graph for its target, in order.
        graph: the graph in that shape.
        form, cpu: what the model was written for.
    """

    model: onnx.ModelProto
    steps: tuple[Step, ...]
    graph: Graph
    form: Form
    cpu: Cpu

    def inexact(self) -> tuple[InexactNode, ...]:
        """The operators that the target's runtime may compute otherwise than `compile` does."""
        return inexact_nodes(self.graph, self.model, self.form, self.cpu)


def to_onnx(
    graph: Graph,
    form: Form = "qlinear",
    runtime: Runtime = "onnxruntime",
    cpu: Cpu = "x86",
    opset: int | None = None,
) -> onnx.ModelProto:
    """The graph as an ONNX model that passes the onnx checker; see `export`."""
    return export(graph, form, runtime, cpu, opset).model


def export(
    graph: Graph,
    form: Form = "qlinear",
    runtime: Runtime = "onnxruntime",
    cpu: Cpu = "x86",
    opset: int | None = None,
) -> Export:
    """The graph as an ONNX model that passes the onnx checker, and what was done to it.

    Args:
        graph: any graph of the IR.
        form: "qlinear" writes QLinear operators where they exist and DQ -> op -> Q elsewhere;
            "qdq" writes DQ -> op -> Q everywhere.
        runtime: "onnxruntime" may use operators of com.microsoft, "standard" only ai.onnx, beside
            those of a user's own domain that the model has.
        cpu: the kind of processor that onnxruntime is to run it on; the same graph gives the same
            bytes on every machine. "x86" makes s8 activations u8 (code + 128, zero point + 128),
            and s8 weights where sums of u8 times s8 codes can saturate on CPUs without VNNI;
            "x86-vnni" the activations only; "arm" leaves both as they are. No value changes.
        opset: of ai.onnx; the model's own, or the oldest that the codes need, unless given.

    Raises:
        ExportFailure: an operator cannot be written in this form or at this opset, or an argument
            is unknown.
    """
    for value, known in ((form, Form), (runtime, Runtime), (cpu, Cpu)):
        if value not in get_args(known):
            raise ExportFailure(f"'{value}' is none of {', '.join(get_args(known))}")
    qlinear.load_all()
    graph = with_explicit_limits(graph)
    before = graph
    graph, steps = shaped(graph, form, runtime, cpu)
    version = export_opset(graph, opset)
    out = Emitter(graph, form, runtime, version, pairs_saturate=cpu == "x86")
    write_nodes(graph, out)
    return Export(_model(graph, before, out), steps, graph, form, cpu)


def _model(graph: Graph, before: Graph, out: Emitter) -> onnx.ModelProto:
    for name in graph.outputs:
        out.operand(name)
    metadata: Mapping[str, object] = graph.metadata
    initializers = list(out.initializers.values())
    initializers += [
        tensor_proto(a, name, graph.types[name].dtype) for name, a in graph.defaults.items()
    ]
    proto = helper.make_graph(
        out.nodes,
        graph.name,
        [described_value(graph, name) for name in graph.inputs],
        [described_value(graph, name) for name in graph.outputs],
        initializers,
        doc_string=str(metadata.get("graph_doc", "")),
        value_info=_inner_values(graph, out),
    )
    opsets = {
        domain: version for domain, version in _opsets(metadata).items() if domain in out.domains
    }
    opsets[""] = out.opset
    for domain in out.domains - set(opsets):
        opsets[domain] = _CONTRIB_VERSION
    model = helper.make_model(
        proto,
        opset_imports=[helper.make_opsetid(*item) for item in sorted(opsets.items())],
        producer_name=str(metadata.get("producer_name", "intonnx")),
        producer_version=str(metadata.get("producer_version", "")),
        doc_string=str(metadata.get("doc", "")),
        domain=str(metadata.get("domain", "")),
        model_version=int(str(metadata.get("model_version", 0))),
    )
    model.ir_version = max(_ir_version(out.opset), int(str(metadata.get("ir_version", 0))))
    helper.set_model_props(model, properties_of(before, out))
    _check(model)
    return model


def _inner_values(graph: Graph, out: Emitter) -> list[onnx.ValueInfoProto]:
    """The types of the values of the IR in between: not every operator's can be inferred."""
    made = (name for node in out.nodes for name in node.output)
    kinds = ((name, graph.types.get(name)) for name in made if name not in graph.outputs)
    return [
        described_value(graph, name)
        for name, kind in kinds
        if kind is not None and kind.shape is not None
    ]


def _opsets(metadata: Mapping[str, object]) -> dict[str, int]:
    opsets = metadata.get("opsets", {})
    assert isinstance(opsets, dict)
    return {str(domain): int(version) for domain, version in opsets.items()}


def _ir_version(opset: int) -> int:
    return helper.find_min_ir_version_for([helper.make_opsetid("", opset)], ignore_unknown=True)


def _check(model: onnx.ModelProto) -> None:
    if model.ByteSize() >= 2**31:
        raise ExportFailure("the model is larger than the 2 GiB that one ONNX file can have")
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise ExportFailure(f"the onnx checker refuses the result: {error}") from None
