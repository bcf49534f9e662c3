"""intonnx behind the interface that the onnx project defines for backends.

    from intonnx.backend import IntonnxBackend
    outputs = IntonnxBackend.run_model(model, [x])

So the onnx project's own test-suite runs unchanged:
`onnx.backend.test.BackendTest(IntonnxBackend, __name__).test_cases`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from intonnx.importer import import_model
from intonnx.ir.dtypes import DType
from intonnx.ir.errors import RunFailure
from intonnx.lowering.executable import Executable, compile_graph

Inputs = Sequence[Any] | Mapping[str, Any]


class IntonnxRep(BackendRep):
    """A compiled model.

    Attributes:
        executable: what `intonnx.compile` returned.
    """

    def __init__(self, executable: Executable) -> None:
        self.executable = executable

    def run(self, inputs: Inputs, **kwargs: Any) -> tuple[Any, ...]:
        """Compute the outputs, in the order of the model.

        Args:
            inputs: arrays for all of the model's inputs or for those that have no default, in
                order; or arrays by name. Sequences are lists, empty optionals None.
            **kwargs: what the interface allows; there are no options.

        Raises:
            RunFailure: there are too many inputs, or too few, or what `Executable.run` raises.
        """
        graph = self.executable.graph
        if not isinstance(inputs, Mapping):
            needed = [name for name in graph.inputs if name not in graph.defaults]
            names = needed if len(inputs) == len(needed) else graph.inputs
            if len(inputs) != len(names):
                raise RunFailure(f"{len(inputs)} inputs for {len(names)}")
            inputs = dict(zip(names, inputs, strict=True))
        outputs = self.executable.run(inputs)
        return tuple(_typed(outputs[name], graph.types[name].dtype) for name in graph.outputs)


def _typed(output: Any, dtype: DType) -> Any:
    """The output in the type that the onnx package has for elements of under 8 bits."""
    if not dtype.is_integer or not dtype.ml_name:
        return output
    return output.astype(getattr(ml_dtypes, dtype.ml_name))


class IntonnxBackend(Backend):
    """Import, compile, run. Errors are those of intonnx, of which all are `IntonnxError`."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Every valid model can be imported; whether all operators can run, `prepare` says."""
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> IntonnxRep:
        """Import and compile a model.

        Args:
            model: the model.
            device: "CPU".
            **kwargs: `numerics`, as for `intonnx.compile`; others are ignored, as the interface
                asks.

        Raises:
            ImportFailure, CompileFailure: see `intonnx.import_model` and `intonnx.compile`.
            ValueError: the device is not a CPU.
        """
        if not cls.supports_device(device):
            raise ValueError(f"no device '{device}': intonnx runs on the CPU")
        numerics = str(kwargs.get("numerics", "qlinear"))
        return IntonnxRep(compile_graph(import_model(model), numerics))

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Inputs, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run a model once; see `prepare` and `IntonnxRep.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Inputs,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node on arrays, at the newest opset or at `opset_version`."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        names = list(dict.fromkeys(name for name in node.input if name))
        given = inputs if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=True))
        values = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype), np.shape(array)
            )
            for name, array in given.items()
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        body = helper.make_graph([node], "one_node", values, results)
        opset = int(kwargs.pop("opset_version", onnx.defs.onnx_opset_version()))
        model = helper.make_model(body, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.run_model(model, given, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is a CPU."""
        return bool(Device(device).type == DeviceType.CPU)
