"""Check a graph: every value made once and before its use, every type what its operator says."""

from __future__ import annotations

from .errors import IntonnxError, ModelFailure
from .graph import Graph, Node, bodies_of
from .types import Array, DType, TensorType


def verify(graph: Graph) -> None:
    """Raise ModelFailure or TypeFailure, naming the node, when the graph is not well formed."""
    known = set(graph.inputs) | set(graph.constants)
    if len(known) != len(graph.inputs) + len(graph.constants):
        raise ModelFailure("two graph inputs or constants have the same name")
    _verify_arrays(graph)
    for node in graph.nodes:
        _verify_node(graph, node, known)
        for name, body in bodies_of(node.op).items():
            _verify_body(node, name, body)
    for name in graph.outputs:
        if name not in known:
            raise ModelFailure(f"the graph output '{name}' is made by no node")
    for name in graph.types:
        if name not in known:
            raise ModelFailure(f"the value '{name}' has a type, but is made by no node")


def _verify_arrays(graph: Graph) -> None:
    for name in (*graph.inputs, *graph.constants):
        if not name:
            raise ModelFailure("a graph input or constant has an empty name")
        if name not in graph.types:
            raise ModelFailure(f"the value '{name}' has no type")
    for name, array in graph.constants.items():
        kind = graph.types[name]
        cause = misfit(array, kind)
        if cause is None and kind.shape != array.shape:
            cause = f"the array has shape {array.shape}, the type {kind.shape}"
        if cause is not None:
            raise ModelFailure(f"the constant '{name}': {cause}")
    for name, array in graph.defaults.items():
        if name not in graph.inputs:
            raise ModelFailure(f"'{name}' has a default, but is no graph input")
        if (cause := misfit(array, graph.types[name])) is not None:
            raise ModelFailure(f"the default of '{name}': {cause}")


def misfit(array: Array, kind: TensorType) -> str | None:
    """Why an array is not a value of this type, or None when it is one."""
    if kind.dtype is DType.CONTAINER:
        return "a container has no array"
    if array.dtype != kind.dtype.numpy:
        return f"the array is {array.dtype}, the type {kind.dtype}"
    if kind.shape is not None and (
        len(kind.shape) != array.ndim
        or any(isinstance(a, int) and a != b for a, b in zip(kind.shape, array.shape, strict=True))
    ):
        return f"the array has shape {array.shape}, the type {kind.shape}"
    if kind.dtype is DType.STRING and not all(isinstance(item, str) for item in array.flat):
        return "not every element is a string"
    return _beyond(array, kind)


def _beyond(array: Array, kind: TensorType) -> str | None:
    """Why elements leave a range that is narrower than that of the numpy type, or None."""
    narrow = kind.quant is not None and kind.quant.is_narrow
    # A wider numpy type holds the elements of types under 8 bits.
    if not array.size or not kind.is_integer or (kind.dtype.bits >= 8 and not narrow):
        return None
    low, high = (kind.quant.qmin, kind.quant.qmax) if kind.quant is not None else (
        kind.dtype.low, kind.dtype.high)  # fmt: skip
    least, most = int(array.min()), int(array.max())
    if low <= least and most <= high:
        return None
    limits = f", {low} to {high}" if narrow else ""
    return f"the elements {least} to {most} leave the range of {kind.dtype}{limits}"


def _verify_node(graph: Graph, node: Node, known: set[str]) -> None:
    for operand in node.operands:
        if operand and operand not in known:
            raise ModelFailure(f"the operand '{operand}' is not made before", node=node.label)
    try:
        inferred = node.op.infer(graph.operand_types(node))
    except IntonnxError as error:
        raise error.located(node=node.label) from None
    if len(inferred) < len(node.results):
        raise ModelFailure(
            f"{len(node.results)} results, but the operator has {len(inferred)}", node=node.label
        )
    for result, kind in zip(node.results, inferred, strict=False):
        if not result:
            continue
        if result in known:
            raise ModelFailure(f"the value '{result}' is made twice", node=node.label)
        known.add(result)
        if result not in graph.types:
            raise ModelFailure(f"the value '{result}' has no type", node=node.label)
        if not agree(graph.types[result], kind):
            declared, found = spelled(graph.types[result], kind)
            raise ModelFailure(
                f"'{result}' is declared as {declared}, but is {found}", node=node.label
            )


def _verify_body(node: Node, name: str, body: Graph) -> None:
    captures: int = getattr(node.op, "captures", 0)
    try:
        verify(body)
        if len(body.inputs) < captures:
            raise ModelFailure(f"{len(body.inputs)} inputs for {captures} captured values")
    except IntonnxError as error:
        error.cause = f"in its {name}: {error.cause}"
        raise error.located(node=node.label) from None


def spelled(*kinds: TensorType) -> list[str]:
    """Types as the text form writes them; equal names of long lists of scales are equal lists."""
    # The text form checks what it reads with this module.
    from .text.types import TypePrinter

    printer = TypePrinter(())
    return [printer.type(kind) for kind in kinds]


def agree(declared: TensorType, inferred: TensorType) -> bool:
    """Whether a declared type says the same as an inferred one, unknown sizes apart."""
    if (declared.dtype, declared.quant) != (inferred.dtype, inferred.quant):
        return False
    if declared.shape is None or inferred.shape is None:
        return True
    return len(declared.shape) == len(inferred.shape) and all(
        a == b or isinstance(a, str) or isinstance(b, str)
        for a, b in zip(declared.shape, inferred.shape, strict=True)
    )
