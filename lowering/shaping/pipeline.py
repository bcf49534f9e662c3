"""Which passes shape a graph for which target, in which order, and what they did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from intonnx.ir.graph import Graph
from intonnx.ir.types import Record

from .pads import merged_pads
from .unsigned import unsigned

Cpu = Literal["x86", "x86-vnni", "arm"]
"""The processors that onnxruntime has kernels of their own for.

With VNNI, products of u8 and s8 codes are exact, and fast; without, pairs of them saturate.
"""
Pass = Callable[[Graph], tuple[Graph, bool]]


class Step(Record):
    """What one pass did.

    Attributes:
        title: what it does, as a user reads it.
        nodes: how many nodes it changed, took out or put in.
    """

    title: str
    nodes: int


def shaped(graph: Graph, form: str, runtime: str, cpu: Cpu) -> tuple[Graph, tuple[Step, ...]]:
    """The graph as the target likes it, and the steps that changed anything.

    Only the QLinear form for onnxruntime is shaped: the other forms say what the model said.
    """
    steps: list[Step] = []
    for title, apply in _passes(form, runtime, cpu):
        after, modified = apply(graph)
        if modified:
            kept = {id(node) for node in graph.nodes}
            fresh = sum(id(node) not in kept for node in after.nodes)
            gone = len(graph.nodes) - (len(after.nodes) - fresh)
            steps.append(Step(title=title, nodes=max(fresh, gone)))
            graph = after
    return graph, tuple(steps)


def _passes(form: str, runtime: str, cpu: Cpu) -> list[tuple[str, Pass]]:
    if form != "qlinear" or runtime != "onnxruntime":
        return []
    passes: list[tuple[str, Pass]] = [("pads join the convolutions that read them", merged_pads)]
    if cpu in ("x86", "x86-vnni"):
        passes.append(("s8 activations become u8", unsigned))
    return passes
