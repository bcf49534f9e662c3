"""Small ONNX models for tests: DQ -> op -> Q at any boundary, and single QLinear nodes.

    model = qdq_model("Conv", [Fed("x", (1, 3, 8, 8), u8(0.02, 114)), Held(w, s8(sw, 0, axis=0))],
                      out=u8(0.05, 3), attrs={"pads": [1, 1, 1, 1]})

`Fed` is a graph input, `Held` a constant; the parameters say what its DequantizeLinear has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Params:
    """Quantization parameters: storage type, scale (scalar or [axis length]), zero point, axis.

    `zero_point=None` leaves the zero point out, as ONNX allows; it is then 0.
    """

    dtype: npt.DTypeLike
    scale: Any
    zero_point: Any = 0
    axis: int | None = None

    @property
    def scale_array(self) -> Array:
        """The scale as f32, scalar or 1-D."""
        return np.asarray(self.scale, np.float32)

    @property
    def zero_array(self) -> Array:
        """The zero point in the storage type, in the shape of the scale."""
        zero = np.asarray(0 if self.zero_point is None else self.zero_point)
        return np.broadcast_to(zero, self.scale_array.shape).astype(self.dtype)


def u8(scale: Any, zero_point: Any = 0, axis: int | None = None) -> Params:
    """Unsigned 8-bit parameters."""
    return Params(np.uint8, scale, zero_point, axis)


def s8(scale: Any, zero_point: Any = 0, axis: int | None = None) -> Params:
    """Signed 8-bit parameters."""
    return Params(np.int8, scale, zero_point, axis)


def u16(scale: Any, zero_point: Any = 0, axis: int | None = None) -> Params:
    """Unsigned 16-bit parameters."""
    return Params(np.uint16, scale, zero_point, axis)


def s16(scale: Any, zero_point: Any = 0, axis: int | None = None) -> Params:
    """Signed 16-bit parameters."""
    return Params(np.int16, scale, zero_point, axis)


def s32(scale: Any, zero_point: Any = 0, axis: int | None = None) -> Params:
    """Signed 32-bit parameters, as biases have them."""
    return Params(np.int32, scale, zero_point, axis)


@dataclass(frozen=True)
class Fed:
    """A graph input. With params: float and Q -> DQ (or codes and DQ when `quantized`)."""

    name: str
    shape: Sequence[int | str | None]
    params: Params | None = None
    quantized: bool = False
    dtype: npt.DTypeLike = np.float32


@dataclass(frozen=True)
class Held:
    """A constant: codes behind a DequantizeLinear when it has params, else the array itself."""

    value: Any
    params: Params | None = None


Operand = Fed | Held | None


@dataclass
class Builder:
    """Collects nodes, constants, inputs and outputs of one graph.

    `qdq_domain` is the domain of QuantizeLinear and DequantizeLinear: "" or com.microsoft, which
    knows 16-bit codes at any opset.
    """

    opset: int = 21
    qdq_domain: str = ""
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])

    def constant(self, name: str, value: Any) -> str:
        """Add an initializer; its dtype is the array's."""
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def feed(self, name: str, shape: Sequence[int | str | None], dtype: npt.DTypeLike) -> str:
        """Add a graph input."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, dtype: npt.DTypeLike | None = None) -> str:
        """Add a graph output of any shape; without dtype the type is left to inference."""
        if dtype is None:
            self.outputs.append(onnx.ValueInfoProto(name=name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            self.outputs.append(helper.make_tensor_value_info(name, kind, None))
        return name

    def node(
        self, op_type: str, inputs: Sequence[str], *, name: str = "", domain: str = "",
        results: int = 1, **attrs: Any,
    ) -> str:  # fmt: skip
        """Add a node; its outputs are `name`, `name_1`, ...; gives the first of them."""
        first = name or f"{op_type.lower()}{len(self.nodes)}"
        outputs = [first, *(f"{first}_{i}" for i in range(1, results))]
        made = helper.make_node(op_type, inputs, outputs, f"{first}_node", domain=domain, **attrs)
        self.nodes.append(made)
        return first

    def parameters(self, prefix: str, params: Params) -> list[str]:
        """Scale and zero point constants (the zero point only when it is given)."""
        names = [self.constant(f"{prefix}_scale", params.scale_array)]
        if params.zero_point is not None:
            names.append(self.constant(f"{prefix}_zero_point", params.zero_array))
        return names

    def quantize(self, value: str, params: Params, name: str = "") -> str:
        """QuantizeLinear; gives the name of the codes."""
        attrs: dict[str, Any] = {} if params.axis is None else {"axis": params.axis}
        if params.zero_point is None and np.dtype(params.dtype) != np.uint8:
            attrs["output_dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(params.dtype))
        name = name or f"{value}_q"
        return self.node(
            "QuantizeLinear",
            [value, *self.parameters(name, params)],
            name=name,
            domain=self.qdq_domain,
            **attrs,
        )

    def dequantize(self, codes: str, params: Params, name: str = "") -> str:
        """DequantizeLinear; gives the name of the float value."""
        attrs: dict[str, Any] = {} if params.axis is None else {"axis": params.axis}
        name = name or f"{codes}_dq"
        return self.node(
            "DequantizeLinear",
            [codes, *self.parameters(name, params)],
            name=name,
            domain=self.qdq_domain,
            **attrs,
        )

    def operand(self, operand: Operand, index: int) -> str:
        """The float value (or plain array) of an operand, with all that it needs."""
        if operand is None:
            return ""
        if isinstance(operand, Held):
            value = np.asarray(operand.value)
            if operand.params is None:
                return self.constant(f"c{index}", value)
            codes = self.constant(f"c{index}", value.astype(operand.params.dtype))
            return self.dequantize(codes, operand.params)
        if operand.params is None:
            return self.feed(operand.name, operand.shape, operand.dtype)
        if operand.quantized:
            codes = self.feed(operand.name, operand.shape, operand.params.dtype)
            return self.dequantize(codes, operand.params)
        value_name = self.feed(operand.name, operand.shape, np.float32)
        return self.dequantize(self.quantize(value_name, operand.params), operand.params)

    def model(self, *, infer: bool = True) -> onnx.ModelProto:
        """The graph as a model of this opset, with com.microsoft when a node needs it.

        With `infer` the outputs get the shapes that the checker wants (a few milliseconds).
        """
        graph = helper.make_graph(
            self.nodes, "test", self.inputs, self.outputs, initializer=self.constants
        )
        imports = [helper.make_opsetid("", self.opset)]
        if any(node.domain == MICROSOFT for node in self.nodes):
            imports.append(helper.make_opsetid(MICROSOFT, 1))
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        return _with_output_types(model) if infer else model


def _with_output_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give every graph output its type and shape (the checker wants them) where inference can."""
    found = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.output}
    if not all(v.type.tensor_type.HasField("shape") for v in found.values()):
        try:  # com.microsoft operators: onnxruntime knows their shapes
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, ["CPUExecutionProvider"]
            )
        except Exception:  # no kernel, or not a valid model: the test wants that
            return model
        for output in session.get_outputs():
            kind = _ONNXRUNTIME_TYPES.get(output.type)
            if kind is not None:
                found[output.name] = helper.make_tensor_value_info(output.name, kind, output.shape)
    for output in model.graph.output:
        output.CopyFrom(found[output.name])
    return model


_ONNXRUNTIME_TYPES = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(uint8)": TensorProto.UINT8,
    "tensor(int8)": TensorProto.INT8,
    "tensor(uint16)": TensorProto.UINT16,
    "tensor(int16)": TensorProto.INT16,
    "tensor(int32)": TensorProto.INT32,
    "tensor(int64)": TensorProto.INT64,
}


def qdq_model(
    op_type: str,
    inputs: Sequence[Operand],
    *,
    out: Params | None = None,
    float_output: bool = False,
    attrs: Mapping[str, Any] | None = None,
    opset: int = 21,
    domain: str = "",
    qdq_domain: str = "",
    results: int = 1,
) -> onnx.ModelProto:
    """DQ -> op -> Q, output `y`: codes, or floats when `float_output` (a DQ follows) or no `out`.

    With several results each gets its own Q: `y`, `y1`, ...
    """
    build = Builder(opset, qdq_domain)
    names = [build.operand(operand, i) for i, operand in enumerate(inputs)]
    first = build.node(
        op_type, names, name="f", domain=domain, results=results, **dict(attrs or {})
    )
    for i in range(results):
        value, final = (first, "y") if i == 0 else (f"{first}_{i}", f"y{i}")
        if out is None:
            build.output(build.node("Identity", [value], name=final))
        elif float_output:
            build.output(build.dequantize(build.quantize(value, out), out, final), np.float32)
        else:
            build.output(build.quantize(value, out, final), out.dtype)
    return build.model()


def chain_model(
    start: Fed, steps: Sequence[tuple[str, Mapping[str, Any]]], *, out: Params, opset: int = 21
) -> onnx.ModelProto:
    """DQ -> op -> op ... -> Q with one-input operators (op type, attributes); output `y`."""
    build = Builder(opset)
    value = build.operand(start, 0)
    for op_type, attrs in steps:
        value = build.node(op_type, [value], **attrs)
    build.output(build.quantize(value, out, "y"), out.dtype)
    return build.model()


def qoperator_model(
    op_type: str,
    inputs: Sequence[Fed | Array | np.generic | None],
    out_dtype: npt.DTypeLike,
    *,
    attrs: Mapping[str, Any] | None = None,
    opset: int = 21,
    domain: str | None = None,
    infer: bool = True,
) -> onnx.ModelProto:
    """One QLinear or integer node, output `y`. Arrays and numpy scalars become initializers.

    The domain is ai.onnx for the operators that ONNX has, else com.microsoft.
    """
    build = Builder(opset)
    names: list[str] = []
    for i, item in enumerate(inputs):
        if item is None:
            names.append("")
        elif isinstance(item, Fed):
            names.append(build.feed(item.name, item.shape, item.dtype))
        else:
            names.append(build.constant(f"c{i}", item))
    if domain is None:
        domain = "" if onnx.defs.has(op_type) else MICROSOFT
    made = dict(attrs or {})
    node = helper.make_node(op_type, names, ["y"], "y_node", domain=domain)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in made.items())
    build.nodes.append(node)
    build.output("y", out_dtype)
    return build.model(infer=infer)


def run_inputs(model: onnx.ModelProto, seed: int = 0, spread: float = 3.0) -> dict[str, Array]:
    """Random inputs for a model with static shapes: normal floats, codes over their whole range."""
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if tensor.elem_type == TensorProto.BOOL:
            feeds[value.name] = rng.random(shape) < 0.5
        elif np.issubdtype(dtype, np.integer):
            info = np.iinfo(dtype)
            feeds[value.name] = rng.integers(info.min, info.max + 1, shape).astype(dtype)
        else:
            feeds[value.name] = (rng.standard_normal(shape) * spread).astype(dtype)
    return feeds
