"""The multipliers that the numerics `fixed` derive from a graph's types, and how near they come."""

from __future__ import annotations

from typing import NamedTuple

from intonnx.ir.graph import Graph

from .executable import node_kernel
from .fixed_point import Multiplier, recorded


class NodeMultipliers(NamedTuple):
    """The multipliers of one operator.

    Attributes:
        node: the operator as errors name it.
        value: its first result.
        multipliers: in the order in which they are applied: `m` and `shift` arrays, and the largest
            relative error of m * 2^(shift - 31) from the real factors.
        error: the largest of these errors.
    """

    node: str
    value: str
    multipliers: tuple[Multiplier, ...]
    error: float


def multipliers(graph: Graph) -> tuple[NodeMultipliers, ...]:
    """What every operator of a graph multiplies by under the numerics `fixed`, in graph order.

    Operators without a multiplier are left out, and so are multipliers that depend on sizes which
    are not known before a run.

    Raises:
        CompileFailure: an operator has no fixed form.
    """
    found = []
    for node in (node for node in graph.nodes if node.op.name.startswith("qnn.")):
        with recorded() as made:
            node_kernel(graph, node, "fixed")
        if made:
            value = next(filter(None, node.results), "")
            error = max(factor.error for factor in made)
            found.append(NodeMultipliers(node.label, value, tuple(made), error))
    return tuple(found)
