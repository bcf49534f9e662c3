"""The ONNX graph under construction, and what every emitter needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

from intonnx.ir.changes import Moved, Multiplied, Stored
from intonnx.ir.graph import Graph, Node
from intonnx.ir.names import Names
from intonnx.ir.ops.lut import FloatStep
from intonnx.ir.types import Array, DType, QuantParams, TensorType
from intonnx.protos import element_of_dtype

Form = Literal["qlinear", "qdq"]
Runtime = Literal["onnxruntime", "standard"]
CONTRIB = "com.microsoft"


class Emitter:
    """Collects ONNX nodes and initializers; values keep the names that they have in the IR.

    Attributes:
        graph: the graph that is written.
        form: "qlinear" for QLinear operators where they exist, "qdq" for DQ -> op -> Q only.
        runtime: "onnxruntime" allows operators of com.microsoft, "standard" those of ai.onnx only.
        opset: the ai.onnx opset that is written.
        pairs_saturate: whether the kernels add products of u8 and s8 codes in pairs that saturate.
    """

    def __init__(
        self,
        graph: Graph,
        form: Form,
        runtime: Runtime,
        opset: int,
        *,
        pairs_saturate: bool = True,
        names: Names | None = None,
    ) -> None:
        self.graph = graph
        self.form: Form = form
        self.runtime: Runtime = runtime
        self.opset = opset
        self.pairs_saturate = pairs_saturate
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.domains = {""}
        self.stored: dict[str, Stored] = {}
        """By initializer, how weights were stored that moved to another type."""
        self.true_scales: dict[str, tuple[float, float]] = {}
        """By result, the scales of two operands for which the kernel gets others."""
        self.moves: dict[str, Moved] = {}
        """By result, codes that are written as others plus or minus 128."""
        self.multipliers: dict[str, Multiplied] = {}
        """By result, the scales in whose quotient its sums are multiplied."""
        self.recipes: dict[str, tuple[FloatStep, ...]] = {}
        """By result, what a table stands for that is written as a look-up."""
        self._names = names or Names(graph.types)
        self._shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._real: dict[str, str] = {}
        self._unsigned: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._node_names: set[str] = set()

    def inner(self, graph: Graph) -> Emitter:
        """An emitter for a body, whose values have names of this one."""
        return Emitter(
            graph,
            self.form,
            self.runtime,
            self.opset,
            pairs_saturate=self.pairs_saturate,
            names=self._names,
        )

    @property
    def qlinear(self) -> bool:
        """Whether QLinear operators are wanted at all."""
        return self.form == "qlinear"

    @property
    def contrib(self) -> bool:
        """Whether QLinear operators of com.microsoft may be written."""
        return self.qlinear and self.runtime == "onnxruntime"

    def type(self, name: str) -> TensorType:
        """The type of a value."""
        return self.graph.types[name]

    def params(self, name: str) -> QuantParams:
        """The quantization parameters of a quantized value."""
        return self.graph.types[name].params

    def fresh(self, base: str) -> str:
        """A name that nothing has yet, made from `base`."""
        return self._names.fresh(base)

    def node(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        domain: str = "",
        **attributes: Any,
    ) -> None:
        """Write a node; attributes that are None are left out, trailing absent inputs dropped."""
        names = list(inputs)
        while names and not names[-1]:
            names.pop()
        self.domains.add(domain)
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(
            helper.make_node(
                op_type,
                names,
                list(outputs),
                name=self.fresh(f"{outputs[0]}/{op_type}"),
                domain=domain,
                **given,
            )
        )

    def node_name(self, name: str, proto: onnx.NodeProto) -> str:
        """The name for a node: `name`, or where another node has it one made from its result.

        A node of the imported model may have become several.
        """
        if not name or name in self._node_names:
            result = next(iter(filter(None, proto.output)), "")
            name = self.fresh(f"{result}/{proto.op_type}")
        self._node_names.add(name)
        return name

    def value(
        self, op_type: str, inputs: Sequence[str], hint: str, *, domain: str = "", **attributes: Any
    ) -> str:
        """Write a node with one result of a fresh name made from `hint`; returns the name."""
        name = self.fresh(hint)
        self.node(op_type, inputs, [name], domain=domain, **attributes)
        return name

    def constant(self, array: Array, hint: str, dtype: DType | None = None) -> str:
        """The name of an initializer with this content; equal ones are stored once.

        `dtype` says the element type where numpy has none of its own (types under 8 bits).
        """
        array = np.asarray(array, order="C")
        element = dtype.value if dtype else array.dtype.str
        key = (element, array.shape, array.tobytes())
        if key not in self._shared:
            name = self.fresh(hint)
            self.initializers[name] = tensor_proto(array, name, dtype)
            self._shared[key] = name
        return self._shared[key]

    def operand(self, name: str) -> str:
        """The ONNX name of an IR value: constants become initializers under their own name."""
        name = self._aliases.get(name, name)
        if name in self.graph.constants and name not in self.initializers:
            kind = self.graph.types[name]
            self.initializers[name] = tensor_proto(self.graph.constants[name], name, kind.dtype)
        return name

    def alias(self, name: str, source: str) -> None:
        """Let every emitter that asks for the operand `name` read `source` in its place."""
        self._aliases[name] = self.operand(source)

    def scale(self, params: QuantParams) -> str:
        """The initializer of the scale, in the expressed type."""
        return self.constant(params.scale.astype(params.expressed.numpy), "scale")

    def zero_point(self, params: QuantParams) -> str:
        """The initializer of the zero point, in the storage type."""
        zeros = params.zero_point.astype(params.storage.numpy)
        return self.constant(zeros, "zero_point", params.storage)

    def kernel_scale(self, params: QuantParams) -> str:
        """The initializer of the scale in float32, the type that QLinear operators take."""
        return self.constant(params.scale, "scale")

    def quantization(self, params: QuantParams) -> list[str]:
        """The initializers of scale and zero point, as QLinear operators take them."""
        return [self.kernel_scale(params), self.zero_point(params)]

    def quantized_operand(self, name: str) -> list[str]:
        """A quantized value with its scale and zero point, as QLinear operators take it."""
        return [self.operand(name), *self.quantization(self.params(name))]

    def quantize(self, real: str, params: QuantParams, result: str) -> None:
        """Write QuantizeLinear from a real value to `result`.

        In the QDQ form a Clip of the codes tells of a range narrower than the type's. In the other
        form it is left out: `with_explicit_limits` has put one where codes can be beyond.
        """
        if params.is_narrow and not self.qlinear:
            whole = self.fresh(f"{result}.unlimited")
            self.quantize(real, params.limited(None, None), whole)
            self.limit(whole, (params.qmin, params.qmax), params.storage, result)
            return
        # From opset 23 on the division is in the type of the scale unless this says float32.
        narrow = params.expressed is not DType.F32 and self.opset >= 23
        inputs = [real, self.scale(params), self.zero_point(params)]
        self.node("QuantizeLinear", inputs, [result], axis=params.axis, block_size=params.block,
                  precision=element_of_dtype(DType.F32) if narrow else None)  # fmt: skip

    def quantize_scaled(self, scaled: str, sums: Array, params: QuantParams, result: str) -> None:
        """Write QuantizeLinear by 1 from sums that are multiplied by a quotient of scales already.

        `sums` are their scales, those of the result are in `params`; both are kept for an import.
        """
        self.multipliers[result] = Multiplied(
            sums=tuple(sums.reshape(-1).tolist()), out=tuple(params.scale.reshape(-1).tolist())
        )
        update = {"scale": np.ones_like(params.scale), "expressed": DType.F32}
        self.quantize(scaled, params.model_copy(update=update), result)

    def limit(self, codes: str, limits: tuple[int, int], dtype: DType, result: str) -> None:
        """Write Clip of integers; by way of int32 where onnxruntime has no kernel for the type.

        `codes` is an ONNX name.
        """
        direct = dtype.bits in (8, 32, 64)
        bounds = np.asarray(limits).astype(dtype.numpy if direct else np.int32)
        low, high = (self.constant(bound, "bound") for bound in bounds)
        if direct:
            self.node("Clip", [codes, low, high], [result])
            return
        wide = self.value("Cast", [codes], f"{result}.i32", to=element_of_dtype(DType.I32))
        clipped = self.value("Clip", [wide, low, high], f"{result}.clipped")
        self.node("Cast", [clipped], [result], to=element_of_dtype(dtype))

    def dequantize(self, name: str, result: str) -> None:
        """Write DequantizeLinear from codes to `result`.

        A scale that the expressed type does not hold, as the product of an accumulator may be,
        stays in float32, and the real value is cast.
        """
        params = self.params(name)
        layout: dict[str, Any] = {"axis": params.axis, "block_size": params.block}
        scale, expressed = params.scale, params.expressed.numpy
        exact = np.array_equal(scale.astype(expressed).astype(np.float32), scale)
        if params.expressed is not DType.F32 and not (exact and params.storage.bits <= 16):
            wide = params.model_copy(update={"expressed": DType.F32})
            inputs = [self.operand(name), *self.quantization(wide)]
            real = self.value("DequantizeLinear", inputs, f"{result}.f32", **layout)
            self.node("Cast", [real], [result], to=element_of_dtype(params.expressed))
            return
        inputs = [self.operand(name), self.scale(params), self.zero_point(params)]
        self.node("DequantizeLinear", inputs, [result], **layout)

    def apart(self, real: str, result: str) -> str:
        """The same real value for the quantizer that makes `result`, past a Concat of one tensor.

        No optimizer looks through it, so none joins what is before it with the quantizer. Written
        only for onnxruntime, and only for arrays: a Concat takes no scalars.
        """
        if self.runtime != "onnxruntime" or not self.type(result).rank:
            return real
        return self.value("Concat", [real], f"{result}.kept", axis=0)

    def real(self, name: str) -> str:
        """The real value of quantized codes: one DequantizeLinear for each value."""
        if name not in self._real:
            self._real[name] = self.fresh(f"{name}.real")
            self.dequantize(name, self._real[name])
        return self._real[name]

    def real_bias(self, name: str, accumulator: QuantParams) -> str:
        """The real value of an int32 bias, whose last axis has the scales of its accumulator."""
        key = f"{name}.real"
        if key in self._real:
            return self._real[key]
        codes, shape = self.operand(name), self.graph.types[name].shape or ()
        axis = None if accumulator.per_tensor else max(0, len(shape) - 1)
        if axis is not None and shape[-1:] != (accumulator.scale.size,):
            sizes = np.asarray([accumulator.scale.size], np.int64)
            codes = self.value("Expand", [codes, self.constant(sizes, "shape")], f"{name}.columns")
        result = self._real[key] = self.fresh(key)
        inputs = [codes, *self.quantization(accumulator)]
        if accumulator.expressed is DType.F32:
            self.node("DequantizeLinear", inputs, [result], axis=axis)
        else:
            real = self.value("DequantizeLinear", inputs, f"{key}.f32", axis=axis)
            self.node("Cast", [real], [result], to=element_of_dtype(accumulator.expressed))
        return result

    def zero_point_operand(self, name: str, zero: str) -> str:
        """The zero point of an integer operand: the value `zero`, else that of its type."""
        if zero:
            return self.operand(zero)
        params = self.graph.types[name].quant
        return "" if params is None else self.zero_point(params)

    def unsigned(self, name: str, zero: str) -> tuple[str, str]:
        """An integer operand and its zero point as u8: s8 codes are moved up by 128.

        The integer operators of onnxruntime take activations of u8 only.
        """
        codes, zero_point = self.operand(name), self.zero_point_operand(name, zero)
        if self.graph.types[name].dtype is not DType.I8:
            return codes, zero_point
        return self.moved_up(codes), self.moved_up(
            zero_point or self.constant(np.zeros((), np.int8), "zero_point")
        )

    def moved_up(self, codes: str, result: str = "") -> str:
        """The value of s8 codes or zero points as u8: 128 is added. Its name may be given."""
        if result:
            self._unsigned[codes] = self._moved(codes, 128, DType.U8, result)
        elif codes not in self._unsigned:
            self._unsigned[codes] = self._moved(codes, 128, DType.U8, "")
        return self._unsigned[codes]

    def moved_down(self, codes: str, result: str) -> None:
        """Write `result`, u8 codes as s8: 128 is taken off."""
        self._moved(codes, -128, DType.I8, result)

    def _moved(self, codes: str, by: int, storage: DType, result: str) -> str:
        name = result or self.fresh(f"{codes}.{storage}")
        wide = self.value("Cast", [codes], f"{codes}.i32", to=onnx.TensorProto.INT32)
        offset = self.constant(np.asarray(by, np.int32), "offset")
        moved = self.value("Add", [wide, offset], f"{codes}.moved")
        self.node("Cast", [moved], [name], to=element_of_dtype(storage))
        return name

    def between(
        self,
        node: Node,
        op_type: str,
        others: Sequence[str] = (),
        *,
        operands: Sequence[str] | None = None,
        **attributes: Any,
    ) -> None:
        """Write DQ -> op -> Q: the operands dequantized, then `others` as they are.

        `operands` are the IR names of the quantized operands, all of the node's unless given.
        """
        names = node.operands if operands is None else operands
        reals = [self.real(name) for name in names]
        result = node.results[0]
        real = self.value(op_type, [*reals, *others], f"{result}.unquantized", **attributes)
        self.quantize(real, self.params(result), result)


def tensor_proto(array: Array, name: str, dtype: DType | None = None) -> onnx.TensorProto:
    """The tensor of an array; types under 8 bits are packed as ONNX packs them."""
    if dtype is not None and dtype in (DType.U2, DType.I2, DType.U4, DType.I4):
        return helper.make_tensor(
            name, element_of_dtype(dtype), array.shape, array.reshape(-1).tolist()
        )
    if array.dtype == object:
        return helper.make_tensor(
            name, onnx.TensorProto.STRING, array.shape, array.astype(str).reshape(-1).tolist()
        )
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
