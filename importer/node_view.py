"""One ONNX node as an import rule sees it: attributes, types, constants, and where to emit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from intonnx.ir.errors import IntonnxError, ModelFailure, QuantizationFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.op import Op
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, DType, QuantParams, TensorType, dtype_of, plain, quantized
from intonnx.protos import element_of_dtype

from .parameters import make_params

if TYPE_CHECKING:
    from .translate import Translation


class NodeView:
    """A node of the model under translation.

    Attributes:
        proto: the node itself.
        version: the opset version of its domain.
        source: the node as the coverage report names it.
    """

    def __init__(self, translation: Translation, proto: onnx.NodeProto, version: int) -> None:
        self._translation = translation
        self.proto = proto
        self.version = version
        self._inputs = [str(name) for name in proto.input]
        domain = "" if proto.domain in ("", "ai.onnx") else f"{proto.domain}."
        self.source = translation.source_of(domain + proto.op_type, proto)

    @property
    def label(self) -> str:
        """The node as errors name it."""
        return f"'{self.source.name}' ({self.source.op})"

    def has(self, index: int) -> bool:
        """Whether the optional input at this index is given."""
        return index < len(self._inputs) and bool(self._inputs[index])

    def input(self, index: int) -> str:
        """The name of an input that must be given. Raises ModelFailure when it is not."""
        if not self.has(index):
            raise ModelFailure(f"input {index} is missing", node=self.label)
        return self._inputs[index]

    def output(self, index: int = 0) -> str:
        """The name of an output, or "" when the model does not ask for it."""
        return str(self.proto.output[index]) if index < len(self.proto.output) else ""

    def type(self, index: int) -> TensorType:
        """The type of an input."""
        return self.type_of(self.input(index))

    def type_of(self, name: str) -> TensorType:
        """The type of any value that is known by now."""
        return self._translation.type_of(name)

    def constant(self, index: int) -> Array | None:
        """The value of an input that is a constant which no caller can override, else None."""
        return self.value(self.input(index)) if self.has(index) else None

    def value(self, name: str) -> Array | None:
        """The value of a constant which no caller can override, None for any other name.

        What nodes make from constants alone is one too.
        """
        return self._translation.made.get(name)

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute: int, float, bytes decoded to str, or a list of these."""
        for found in self.proto.attribute:
            if found.name == name:
                value = onnx.helper.get_attribute_value(found)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def fresh(self, suffix: str) -> str:
        """A name for a value in between, made from the first output's name."""
        return self._translation.fresh(f"{self.output()}.{suffix}")

    def emit(self, op: Op, operands: Sequence[str], results: Sequence[str] | None = None) -> str:
        """Add a node; `results` are the ONNX outputs unless given. Returns the first result."""
        names = [str(name) for name in self.proto.output] if results is None else list(results)
        try:
            self._translation.emit(op, operands, names, self.source)
        except IntonnxError as error:
            raise error.located(node=self.label) from None
        return names[0]

    def onnx(
        self, op_type: str, operands: Sequence[str], result: str = "", **attributes: Any
    ) -> str:
        """Add a float operator of ai.onnx as a part of this node; returns its one result.

        The result gets a fresh name unless one is given. The operator has the meaning of the
        model's opset of ai.onnx.
        """
        name = result or self.fresh(op_type.lower())
        proto = onnx.helper.make_node(op_type, list(operands), [name], **attributes)
        self._translation.emit_onnx(proto, self.source)
        return name

    def cast(self, name: str, dtype: DType, result: str = "") -> str:
        """Add a Cast to another element type; returns the result's name, as `onnx` does."""
        return self.onnx("Cast", [name], result, to=element_of_dtype(dtype))

    @property
    def opset(self) -> int:
        """The model's opset of ai.onnx, whatever the domain of the node."""
        return self._translation.opset

    def keep(self, refusal: Refusal | None = None) -> None:
        """Leave the node as `onnx.<op_type>`, with a reason when there is one."""
        self._translation.keep(self, refusal)

    def literal(self) -> None:
        """Compute the node where all is constant, else leave it as `onnx.<op_type>`."""
        self._translation.literal(self)

    def limit(self, low: int, high: int) -> None:
        """Say that the first result, which holds integers, has none below `low` or above `high`."""
        self._translation.limits[self.output()] = low, high

    def keep_for_parameters(self) -> None:
        """Leave the node because a scale or zero point is no constant: `params` gave None."""
        detail = f"a scale or zero point of {self.label} is computed at run time"
        self.keep(Refusal(code=Code.RUNTIME_PARAMETERS, detail=detail))

    def define(self, array: Array, kind: TensorType) -> None:
        """Let the node's only output be a constant."""
        self._translation.define_constant(self, array, kind)

    def params(
        self, scale: int, zero_point: int, storage: DType, *, rank: int | None, axis: int | None
    ) -> QuantParams | None:
        """Quantization parameters from the constant inputs at these indices.

        None when one of them is computed at run time or may be overridden. `axis` is the axis of
        per-axis parameters, None where only one scale is allowed. Raises QuantizationFailure for
        parameters that ONNX does not allow.
        """
        scales = self.constant(scale)
        zeros = self.constant(zero_point)
        if scales is None or (zeros is None and self.has(zero_point)):
            return None
        if zeros is not None and self.type(zero_point).dtype is not storage:
            raise QuantizationFailure(
                f"the zero point '{self.input(zero_point)}' is "
                f"{self.type(zero_point).dtype}, the quantized tensor {storage}",
                node=self.label,
            )
        return make_params(scales, zeros, storage, rank=rank, axis=axis, node=self.label)

    def codes(self, name: str, params: QuantParams) -> str:
        """The value with these parameters in its type: itself, a retyped constant, or a cast.

        Where a Clip of integers made it, the range in the type is that of the Clip.
        """
        kind = self._translation.type_of(name)
        if (limits := self._translation.limits.get(name)) is not None:
            params = params.limited(*limits)
        if kind.quant == params:
            return name
        if kind.dtype is not params.storage:
            raise QuantizationFailure(
                f"'{name}' is {kind.dtype}, its parameters are for {params.storage}",
                node=self.label,
            )
        try:
            typed = quantized(params, kind.shape)
        except ValueError as error:
            raise QuantizationFailure(_first_line(error), node=self.label) from None
        array = self._translation.constants.get(name)
        if array is not None:
            return self._translation.add_constant(name, array, typed)
        result = self._translation.fresh(f"{name}.codes")
        return self.emit(StorageCast(out=params), [name], [result])

    def integers(self, name: str) -> str:
        """The value without quantization parameters, as the integer operators read it."""
        kind = self._translation.type_of(name)
        if kind.quant is None:
            return name
        result = self._translation.fresh(f"{name}.integers")
        return self.emit(StorageCast(out=None), [name], [result])

    def new_constant(self, name: str, array: Array, kind: TensorType | None = None) -> str:
        """Add a constant; its type is that of the array unless given. Returns its name."""
        array = np.asarray(array)
        return self._translation.add_constant(
            name, array, kind or plain(dtype_of(array), array.shape)
        )


def _first_line(error: ValueError) -> str:
    details = getattr(error, "errors", None)
    if details is None:
        return str(error)
    return str(details()[0]["msg"]).removeprefix("Value error, ")
