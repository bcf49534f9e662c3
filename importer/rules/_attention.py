"""QAttention: an integer projection to queries, keys and values, then attention in float."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.registry import imports
from intonnx.ir.graph import Refusal
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType

from ._scaled_products import MICROSOFT, Product, scaled_product

_LOWEST = float(np.finfo(np.float32).min)
"""What onnxruntime puts where a token may not look ahead, whatever the mask says."""


@imports("QAttention", since=1, domain=MICROSOFT)
def qattention(node: NodeView) -> None:
    """QAttention: input, weight, bias, their scales, mask_index, zero points, past.

    The projection is `qnn.dense` and `qnn.dequantize`; all that follows is float in the model too.
    """
    hidden = _hidden(node)
    if isinstance(hidden, Refusal):
        return node.keep(hidden)
    names = [node.input(index) if node.has(index) else "" for index in range(9)]
    x, weight, bias, x_scale, weight_scale, mask, x_zero, weight_zero, past = names
    projected = node.fresh("projection")
    product = Product(x, weight, x_scale, weight_scale, x_zero, weight_zero, bias)
    scaled_product(node, product, projected)
    heads = int(node.attribute("num_heads", 1))
    attention = _Attention(node, heads, hidden // heads)
    query, key, value = (attention.part(projected, index) for index in range(3))
    if past:
        key, value = (attention.after(past, i, name) for i, name in enumerate((key, value)))
    if node.output(1):
        pair = [attention.unsqueezed(name, 0) for name in (key, value)]
        node.onnx("Concat", pair, node.output(1), axis=0)
    attention.attend(query, key, value, mask)
    return None


def _hidden(node: NodeView) -> int | Refusal:
    """The size of all heads together; a refusal for what is not read."""
    weight = node.type(1).shape
    heads = int(node.attribute("num_heads", 1))
    if weight is None or not isinstance(weight[-1], int) or node.type(0).rank != 3 or heads < 1:
        detail = f"the shapes of '{node.input(0)}' and '{node.input(1)}' are not known"
        return Refusal(code=Code.UNSUPPORTED_TYPE, detail=detail)
    if node.type(2).dtype is not DType.F32:
        detail = f"'{node.input(2)}' is {node.type(2).dtype}: use float32"
        return Refusal(code=Code.UNSUPPORTED_TYPE, detail=detail)
    shared = node.attribute("past_present_share_buffer", 0)
    if node.attribute("do_rotary", 0) or shared or (node.has(5) and not _is_mask(node)):
        detail = (
            f"{node.label} has rotary embedding, a buffer that past and present share, or a mask of"
            " unknown shape: leave these out, declare the shape"
        )
        return Refusal(code=Code.UNSUPPORTED_ATTRIBUTE, detail=detail)
    return weight[-1] // 3


def _is_mask(node: NodeView) -> bool:
    """Whether the mask has a shape whose meaning is known."""
    mask, shape = node.type(5).shape, node.type(0).shape
    batch = shape[0] if shape else None
    if mask is None or not 0 < len(mask) < 4:
        return False
    first = mask[0]
    twice = isinstance(first, int) and isinstance(batch, int) and first == 2 * batch
    return len(mask) > 1 or first == batch or twice


@dataclass(frozen=True)
class _Attention:
    """The float operators of one node; batches are axis 0, heads axis 1."""

    node: NodeView
    heads: int
    size: int

    def part(self, projected: str, index: int) -> str:
        """Queries, keys or values [batch, heads, tokens, size]."""
        width, node = self.heads * self.size, self.node
        ends = [self._integers([index * width]), self._integers([(index + 1) * width])]
        columns = node.onnx("Slice", [projected, *ends, self._integers([2])])
        shape = self._integers([0, 0, self.heads, self.size])
        return node.onnx("Transpose", [node.onnx("Reshape", [columns, shape])], perm=[0, 2, 1, 3])

    def after(self, past: str, index: int, name: str) -> str:
        """Past keys (0) or values (1), then the new ones."""
        chosen = self.node.new_constant(self.node.fresh("index"), np.asarray(index, np.int64))
        before = self.node.onnx("Gather", [past, chosen], axis=0)
        return self.node.onnx("Concat", [before, name], axis=2)

    def attend(self, query: str, key: str, value: str, mask: str) -> None:
        """Softmax(query key^T scale + mask) value, heads side by side again."""
        node = self.node
        scale = float(node.attribute("scale", 0.0)) or 1 / math.sqrt(self.size)
        turned = node.onnx("Transpose", [key], perm=[0, 1, 3, 2])
        scores = node.onnx("MatMul", [query, turned])
        scores = node.onnx("Mul", [scores, self._real(scale)])
        bias = self._masked(key, mask) if mask else ""
        if node.attribute("unidirectional", 0):
            bias = self._causal(query, key, bias)
        scores = node.onnx("Add", [scores, bias]) if bias else scores
        mixed = node.onnx("MatMul", [node.onnx("Softmax", [scores], axis=3), value])
        rows = node.onnx("Transpose", [mixed], perm=[0, 2, 1, 3])
        shape = self._integers([0, 0, self.heads * self.size])
        node.onnx("Reshape", [rows, shape], node.output())

    def _masked(self, key: str, mask: str) -> str:
        """What the mask adds, of rank 4: `mask_filter_value` where a token is not to be seen."""
        node, rank = self.node, self.node.type_of(mask).rank
        if rank == 1:
            seen = self._in_range(key, mask)
        else:
            zero = node.new_constant(node.fresh("zero"), np.zeros((), np.int32))
            seen = node.onnx("Greater", [mask, zero])
            seen = self.unsqueezed(seen, 1)
            seen = self.unsqueezed(seen, 1) if rank == 2 else seen
        filtered = float(node.attribute("mask_filter_value", -10000.0))
        return node.onnx("Where", [seen, self._real(0.0), self._real(filtered)])

    def _in_range(self, key: str, mask: str) -> str:
        """Where the position is before the end, and not before the start where one is given."""
        node, batch = self.node, (self.node.type(0).shape or ("?",))[0]
        wide = node.cast(mask, DType.I64)
        column, positions = self._integers([-1, 1, 1, 1]), self._positions(key)
        if node.type_of(mask).shape == (batch,):
            return node.onnx("Less", [positions, node.onnx("Reshape", [wide, column])])
        count = int(batch)
        sides = [
            node.onnx("Slice", [wide, self._integers([a]), self._integers([a + count])])
            for a in (0, count)
        ]
        end, start = (node.onnx("Reshape", [side, column]) for side in sides)
        early = node.onnx("Less", [positions, start])
        within = node.onnx("Less", [positions, end])
        return node.onnx("And", [within, node.onnx("Not", [early])])

    def _causal(self, query: str, key: str, bias: str) -> str:
        """The mask, and the lowest number where a key comes later than the query."""
        keys = self._positions(key)
        known, length = self.node.value(keys), (self.node.type_of(query).shape or ("?",) * 4)[2]
        if known is not None and isinstance(length, int):
            last = known[len(known) - length :]
            later = self.node.new_constant(self.node.fresh("later"), known > last[:, None])
        else:
            total = self._length(key)
            start = self.node.onnx("Sub", [total, self._length(query)])
            rows = self._range(start, total)
            rows = self.node.onnx("Reshape", [rows, self._integers([-1, 1])])
            later = self.node.onnx("Greater", [keys, rows])
        return self.node.onnx("Where", [later, self._real(_LOWEST), bias or self._real(0.0)])

    def _positions(self, key: str) -> str:
        """0, 1, ... for each key: [tokens]."""
        length = (self.node.type_of(key).shape or ("?",) * 4)[2]
        if isinstance(length, int):
            name = self.node.fresh("positions")
            return self.node.new_constant(name, np.arange(length, dtype=np.int64))
        zero = self.node.new_constant(self.node.fresh("zero"), np.zeros((), np.int64))
        return self._range(zero, self._length(key))

    def _range(self, start: str, limit: str) -> str:
        one = self.node.new_constant(self.node.fresh("one"), np.ones((), np.int64))
        return self.node.onnx("Range", [start, limit, one])

    def _length(self, name: str) -> str:
        """How many tokens there are, at run time."""
        axis = self.node.new_constant(self.node.fresh("axis"), np.asarray(2, np.int64))
        return self.node.onnx("Gather", [self.node.onnx("Shape", [name]), axis], axis=0)

    def unsqueezed(self, name: str, axis: int) -> str:
        """The value with a new axis; from opset 13 on the axes are an input."""
        if self.node.opset < 13:
            return self.node.onnx("Unsqueeze", [name], axes=[axis])
        return self.node.onnx("Unsqueeze", [name, self._integers([axis])])

    def _integers(self, values: list[int]) -> str:
        return self.node.new_constant(self.node.fresh("sizes"), np.asarray(values, np.int64))

    def _real(self, value: float) -> str:
        return self.node.new_constant(self.node.fresh("real"), np.asarray(value, np.float32))
