"""Step one: each ONNX node to one or a few IR operators, faithfully."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import onnx

from intonnx.ir.errors import ModelFailure
from intonnx.ir.graph import Graph, Node, Refusal, Source
from intonnx.ir.names import Names
from intonnx.ir.op import Op
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.reasons import Code
from intonnx.ir.shapes import refined
from intonnx.ir.types import Array, DType, TensorType, dtype_of, plain, quantized
from intonnx.protos import dtype_of_element, type_of, unknown_type

from . import rules
from .attributes import attributes_of, captured_names
from .bodies import Given, bodies_of, has_bodies
from .fold import are_known, fold, move_sizes
from .load import LoadedModel
from .made_constants import MadeConstants
from .malformed import reading
from .metadata import metadata_of
from .node_view import NodeView
from .registry import import_rule
from .scaled_constants import Scaled, ScaledConstants
from .shapes import declared_types, infer_result_types
from .sparse import dense

_OPSET_OF_NONE = 13


def translate(
    model: LoadedModel,
    finish: Callable[[Graph], Graph],
    given: Given | None = None,
) -> Graph:
    """The literal graph, one node after the other.

    `finish` is applied to the graphs of bodies inside; `given` are constants from outside, by name.
    Quantizers, QLinear and integer operators become qnn operators, everything else `onnx.<Op>`;
    nodes whose inputs are all constant are computed.

    Raises ModelFailure or QuantizationFailure, naming the node.
    """
    rules.load_all()
    translation = Translation(model, finish, given or {})
    for proto in model.proto.graph.node:
        translation.translate(proto)
    return translation.graph()


class Translation:
    """The graph under construction and what is known about its values."""

    def __init__(self, model: LoadedModel, finish: Callable[[Graph], Graph], given: Given) -> None:
        self._model = model
        self._finish = finish
        graph = model.proto.graph
        self.constants: dict[str, Array] = {}
        self.types: dict[str, TensorType] = {}
        self._defaults: dict[str, Array] = {}
        self._nodes: list[Node] = []
        self._folded: list[Source] = []
        self._typed: dict[tuple[str, TensorType], str] = {}
        self._declared = declared_types(model.proto)
        self._names = Names(self._declared)
        for node in graph.node:
            self._names.take(*node.input, *node.output)
        self._doubted = False
        self._plain: set[str] = set()
        """Initializers whose type has no quantization parameters yet."""
        self._uses = Counter(name for node in graph.node for name in node.input)
        self._uses.update(value.name for value in graph.output)
        self._uses.update(name for node in graph.node for name in captured_names(node))
        self._shapes: dict[str, Array] = {}
        self._scaled = ScaledConstants()
        self._dequantizers: dict[str, onnx.NodeProto] = {}
        """Nodes that dequantize codes by constant parameters, by their results."""
        self.made = MadeConstants(self.constants, self.types, model.opsets)
        self.limits: dict[str, tuple[int, int]] = {}
        """The ranges that integers are known to have, by the results of Clip nodes."""
        self._named = Counter(node.name for node in graph.node)
        self._inputs = [value.name for value in graph.input]
        for value in graph.input:
            self.types[value.name] = type_of(value.type)
        self._read_initializers(graph)
        for name, (array, kind) in given.items():
            self.constants[name], self.types[name] = array, kind
            self._plain.add(name)
            self._names.take(name)

    def _build_body(self, model: LoadedModel, given: Given) -> Graph:
        """The graph of a body, without what the model says beside its graph."""
        return replace(self._finish(translate(model, self._finish, given)), metadata={})

    def _read_initializers(self, graph: onnx.GraphProto) -> None:
        overridable = set(self._inputs)
        tensors = [(tensor.name, self._model.external.array(tensor), tensor.data_type)
                   for tensor in graph.initializer]  # fmt: skip
        tensors += [(tensor.values.name, dense(tensor), tensor.values.data_type)
                    for tensor in graph.sparse_initializer]  # fmt: skip
        for name, array, element in tensors:
            if name in overridable:
                self._defaults[name] = array
            else:
                self._add(name, array, element)
            self._names.take(name)

    def _add(self, name: str, array: Array, element: int) -> None:
        self.constants[name] = array
        self.types[name] = plain(dtype_of_element(element), array.shape)
        self._plain.add(name)

    def translate(self, proto: onnx.NodeProto) -> None:
        """Translate one node by its rule, or compute it, or keep it."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        if domain not in self._model.opsets:
            raise ModelFailure(
                f"the model imports no opset of the domain '{domain or 'ai.onnx'}'",
                node=f"'{proto.name}' ({proto.op_type})",
            )
        view = NodeView(self, proto, self._model.opsets[domain])
        self.made.note(view)
        with reading(view.label):
            rule = import_rule(domain, proto.op_type, view.version)
            if rule is not None:
                rule(view)
            else:
                self.literal(view)
        if proto.op_type == "DequantizeLinear" and all(
            name in self.constants for name in proto.input[1:] if name
        ):
            self._dequantizers[proto.output[0]] = proto

    def literal(self, view: NodeView) -> None:
        """Compute a node whose inputs are constant, keep any other."""
        if not self._computed(view):
            self.keep(view, _foreign(view))

    def _computed(self, view: NodeView) -> bool:
        results = fold(view, self.constants, self.types, self._model.opsets)
        if results is None:
            results = self._moved_sizes(view)
        if results is None:
            return False
        for name, array in zip(view.proto.output, results, strict=True):
            if name:
                self.constants[name] = array
                kind = self._declared.get(name)
                dtype = kind.dtype if kind and kind.dtype.numpy == array.dtype else dtype_of(array)
                self.types[name] = plain(dtype, array.shape)
        self._folded.append(view.source)
        self._scaled.note(view, self.constants, self.types)
        return True

    def _moved_sizes(self, view: NodeView) -> list[Array] | None:
        """Sizes that are known although the shape they come from is known in part only."""
        results = move_sizes(view, self._shapes, self.constants, self._model.opsets)
        if results is None:
            return None
        if all(are_known(sizes) for sizes in results):
            return results
        self._shapes.update(zip(view.proto.output, results, strict=False))
        return None

    def source_of(self, op: str, proto: onnx.NodeProto) -> Source:
        """The node as reports name it: by its first result where its name is not its own."""
        results = [name for name in proto.output if name]
        name = proto.name if self._named[proto.name] == 1 else ""
        return Source(op=op, name=name or next(iter(results), ""))

    def define_constant(self, view: NodeView, array: Array, kind: TensorType) -> None:
        """Let the node's only output be a constant."""
        self.constants[view.output()] = array
        self.types[view.output()] = kind
        self._folded.append(view.source)

    def keep(self, view: NodeView, refusal: Refusal | None) -> None:
        """Leave a node as `onnx.<op_type>`."""
        captures = [name for name in captured_names(view.proto) if name in self.types]
        attributes = attributes_of(view.proto)
        if has_bodies(view.proto, view.version):
            captures = [name for name in captures if name not in self.constants]
            codes = {n: self._dequantizers[n] for n in captures if n in self._dequantizers}
            captures = list(dict.fromkeys(codes[n].input[0] if n in codes else n for n in captures))
            attributes |= bodies_of(
                view.proto, captures, self.types, self.constants, self._model,
                list(codes.values()), self._build_body,
            )  # fmt: skip
        operands = [str(name) for name in view.proto.input] + captures
        for name in operands:
            if name:
                self.type_of(name)
        op = OnnxOp(
            op_type=view.proto.op_type,
            domain="" if view.proto.domain == "ai.onnx" else view.proto.domain,
            version=view.version,
            attributes=attributes,
            types=self._result_types(view),
            captures=len(captures),
        )
        self.emit(
            op, operands, [str(name) for name in view.proto.output], view.source, refusal=refusal
        )

    @property
    def opset(self) -> int:
        """The model's opset of ai.onnx; where it imports none, the one that is then exported."""
        return self._model.opsets.get("", _OPSET_OF_NONE)

    def emit_onnx(self, proto: onnx.NodeProto, source: Source) -> None:
        """Add an operator of ai.onnx that the model does not have, on values of the model."""
        opsets = {**self._model.opsets, "": self.opset}
        model = replace(self._model, opsets=opsets)
        inferred = infer_result_types(proto, self.types, self.constants, model)
        op = OnnxOp(
            op_type=proto.op_type,
            version=self.opset,
            attributes=attributes_of(proto),
            types=tuple(inferred.get(name, unknown_type()) for name in proto.output),
        )
        self.emit(op, list(proto.input), list(proto.output), source)

    def _result_types(self, view: NodeView) -> tuple[TensorType, ...]:
        inferred: Mapping[str, TensorType] = {}
        names = [str(name) for name in view.proto.output]
        # Where onnx does not know the data's shape, it gives Expand the shape that is asked for.
        alone = self._doubted or view.proto.op_type == "Expand"
        if alone or any(_vague(self._declared.get(name)) for name in names if name):
            inferred = infer_result_types(view.proto, self.types, self.constants, self._model)
        for name in names:
            self._compare(inferred.get(name), self._declared.get(name))
        return tuple(
            _better(self._declared.get(name), inferred.get(name), self._doubted) for name in names
        )

    def _compare(self, found: TensorType | None, declared: TensorType | None) -> None:
        """Where the types of the whole model were wrong once, those of single nodes count more."""
        if found is not None and declared is not None and _contradicts(found, declared):
            self._doubted = True

    def type_of(self, name: str) -> TensorType:
        """The type of a value that is known by now. Raises ModelFailure for a dangling name."""
        if name not in self.types:
            raise ModelFailure(f"the input '{name}' is made by no node and is no initializer")
        return self.types[name]

    def fresh(self, base: str) -> str:
        """A name that nothing in the model has."""
        return self._names.fresh(base)

    def add_constant(self, name: str, array: Array, kind: TensorType) -> str:
        """A constant with this content and type; the same array under the same type is shared."""
        if self._uses[name] == 1 and name in self._plain:
            self._plain.discard(name)
            self.types[name] = kind
            return name
        known = self._typed.get((name, kind))
        if known is not None and self.constants[known] is array:
            return known
        result = self.fresh(name if name not in self.types else f"{name}.codes")
        self.constants[result] = array
        self.types[result] = kind
        self._typed[name, kind] = result
        return result

    def emit(
        self,
        op: Op,
        operands: Sequence[str],
        results: Sequence[str],
        *sources: Source,
        refusal: Refusal | None = None,
    ) -> None:
        """Add a node and the types of its results."""
        kinds = op.infer([self.type_of(name) if name else None for name in operands])
        if len(results) > len(kinds):
            raise ModelFailure(f"the node has {len(results)} results, the operator {len(kinds)}")
        for name, kind in zip(results, kinds, strict=False):
            if not name:
                continue
            if name in self.types:
                raise ModelFailure(f"the value '{name}' is made twice")
            declared = self._declared.get(name)
            self._compare(kind, declared)
            self.types[name] = refined(kind, declared)
        self._nodes.append(Node(op, tuple(operands), tuple(results), sources, refusal))

    def _dequantize_constants(self) -> None:
        """Let nodes read codes through a dequantize where the model has its own nodes for it."""
        read = dict.fromkeys(name for node in self._nodes for name in node.operands if name)
        nodes, self._nodes = self._nodes, []
        for name in read:
            self._make_scaled(name)
        self._nodes += nodes

    def _make_scaled(self, name: str) -> None:
        found = self._scaled.get(name)
        if found is None or name not in self.constants:
            return
        del self.constants[name], self.types[name]
        if isinstance(found, Scaled):
            shape = self.types[found.codes].shape
            kind = quantized(found.params, shape)
            codes = self.add_constant(found.codes, self.constants[found.codes], kind)
            self.emit(Dequantize(), [codes], [name], *found.sources)
        else:
            self._make_scaled(found.input(0))
            self.keep(found, None)

    def graph(self) -> Graph:
        """The finished literal graph, before dead values are dropped."""
        self._dequantize_constants()
        outputs = tuple(value.name for value in self._model.proto.graph.output)
        for name in outputs:
            if name not in self.types:
                raise ModelFailure(f"the graph output '{name}' is made by no node")
        return Graph(
            name=self._model.proto.graph.name or "main",
            inputs=tuple(self._inputs),
            outputs=outputs,
            nodes=tuple(self._nodes),
            types=self.types,
            constants=self.constants,
            defaults=self._defaults,
            folded=tuple(self._folded),
            metadata=metadata_of(self._model),
        )


def _contradicts(found: TensorType, declared: TensorType) -> bool:
    """Whether two types of a value have other ranks, or an axis with two sizes."""
    if found.shape is None or declared.shape is None or found.shape == declared.shape:
        return False
    return len(found.shape) != len(declared.shape) or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(found.shape, declared.shape, strict=True)
    )


_KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft")


def _foreign(view: NodeView) -> Refusal | None:
    """The reason on an operator of a domain that neither ONNX nor onnxruntime defines."""
    domain, op_type = view.proto.domain, view.proto.op_type
    if domain in _KNOWN_DOMAINS:
        return None
    return Refusal(
        code=Code.NO_INTEGER_FORM,
        detail=f"'{op_type}' is an operator of the domain '{domain}', which ONNX does not define: "
        "export the model with operators of ai.onnx",
    )


def _vague(kind: TensorType | None) -> bool:
    return kind is None or (kind.dtype is not DType.CONTAINER and kind.shape is None)


def _better(declared: TensorType | None, inferred: TensorType | None, doubted: bool) -> TensorType:
    """The type that says more; where the declared one is doubted, the inferred one if it can."""
    if declared is None or (doubted and not _vague(inferred)):
        return inferred or unknown_type()
    return inferred if inferred is not None and declared.shape is None else declared
