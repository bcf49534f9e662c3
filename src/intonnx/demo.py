"""`intonnx demo`: a digits network with its test images, from import to export."""

from __future__ import annotations

import shlex
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnx

import intonnx
from intonnx.cli.display import share, show
from intonnx.cli.inspection import inspect_graph, show_coverage
from intonnx.ir.archive import replacing
from intonnx.ir.errors import TextFailure
from intonnx.ir.graph import Graph
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.types import Array
from intonnx.verification import runtime

MODEL = "digits_qdq.onnx"
EXPORT = "digits_qlinear.onnx"
IMAGES = "images.npy"


def run_demo(folder: Path) -> None:
    """Run the demo and leave its files in a folder, which is made when it is not there.

    Raises TextFailure when a file cannot be written.
    """
    data = files("intonnx.demo_data")
    model = data.joinpath(MODEL).read_bytes()
    with data.joinpath("digits_test.npz").open("rb") as file, np.load(file) as arrays:
        images, labels = arrays["images"], arrays["labels"]

    show(f"1. Import {MODEL}, a quantized network for 8x8 images of handwritten digits")
    show()
    graph = intonnx.import_model(model)
    show_coverage(inspect_graph(graph, Path(MODEL)))

    show()
    show(f"2. Run it in integers, with numpy alone, on {len(images)} test images")
    show()
    outputs = _run_in_integers(graph, images, labels)

    show()
    show("3. Export it as a graph of QLinear operators")
    show()
    export = intonnx.to_onnx(graph)
    _write(folder, {MODEL: model, EXPORT: export.SerializeToString()}, images)
    show(f"   {folder / EXPORT}: {_operators(export)}")

    show()
    show("4. Compare with onnxruntime")
    show()
    if runtime.is_installed():
        _compare(graph, onnx.load_from_string(model), export, images, outputs)
    else:
        show("   not installed; pip install onnxruntime, and the demo compares with it")
    _what_next(folder)


def _run_in_integers(graph: Graph, images: Array, labels: Array) -> Array:
    executable = intonnx.compile(graph)
    began = time.perf_counter()
    outputs = executable.run({graph.inputs[0]: images})[graph.outputs[0]]
    elapsed = time.perf_counter() - began
    right = int(np.count_nonzero(outputs.argmax(axis=1) == labels))
    show(f"   accuracy {100 * right / len(labels):.2f} % ({right} of {len(labels)} right)")
    show(f"   {1000 * elapsed:.0f} ms")
    return outputs


def _write(folder: Path, contents: dict[str, bytes], images: Array) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TextFailure(f"no folder can be made: {error.strerror}", file=str(folder)) from None
    for name, content in contents.items():
        with replacing(folder / name) as file:
            file.write(content)
    with replacing(folder / IMAGES) as file:
        np.save(file, images, allow_pickle=False)


def _operators(model: onnx.ModelProto) -> str:
    kinds = [node.op_type for node in model.graph.node]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))


def _compare(
    graph: Graph,
    model: onnx.ModelProto,
    export: onnx.ModelProto,
    images: Array,
    outputs: Array,
) -> None:
    scale = _output_scale(graph)
    for title, reference in (("the original model", model), ("the exported graph", export)):
        theirs = runtime.Session(reference).run({graph.inputs[0]: images})[graph.outputs[0]]
        same = int(np.count_nonzero(outputs.argmax(axis=1) == theirs.argmax(axis=1)))
        differing = int(np.count_nonzero(outputs != theirs))
        largest = float(np.abs(outputs - theirs).max()) / scale
        verdict = "bit for bit equal"
        if differing:
            unit = "quantum" if round(largest, 3) == 1 else "quanta"
            part = share(differing, outputs.size)
            verdict = f"{part} of the outputs differ, by at most {largest:.3g} {unit}"
        show(f"   {title}: same class for {same} of {len(images)} images, {verdict}")


def _output_scale(graph: Graph) -> float:
    made = graph.producers[graph.outputs[0]]
    params = graph.types[made.operands[0]].quant if isinstance(made.op, Dequantize) else None
    return float(params.scalar_scale) if params is not None and params.per_tensor else 1.0


def _what_next(folder: Path) -> None:
    model, images = (shlex.quote(str(folder / name)) for name in (MODEL, IMAGES))
    show()
    show("Next, with these files or with a model of your own:")
    show()
    show(f"   intonnx inspect {model}")
    show(f"   intonnx compile {model} -o qlinear.onnx")
    show(f"   intonnx run {model} --input x={images} -o outputs.npz")
    show(f"   intonnx verify {model}")
