"""Float networks of well-known shapes with random weights, as ONNX models of opset 17."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
OPSET = 17


class Network:
    """Collects the nodes of a float network; a method adds a layer and returns its result's name.

    Weights are normal with a variance that keeps the size of activations, from one seed.
    """

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def held(self, array: Array) -> str:
        """An initializer."""
        name = f"t{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def normal(self, *shape: int, fan: int) -> str:
        """Weights."""
        array = self.random.standard_normal(shape) * np.sqrt(2 / fan)
        return self.held(array.astype(np.float32))

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result."""
        result = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op_type, list(inputs), [result], name=f"n_{result}", **attributes)
        )
        return result

    def conv(self, x: str, c: int, o: int, k: int = 1, stride: int = 1, groups: int = 1) -> str:
        """A convolution with SAME padding and a bias."""
        w = self.normal(o, c // groups, k, k, fan=c // groups * k * k)
        bias = self.held((self.random.standard_normal(o) * 0.1).astype(np.float32))
        return self.add("Conv", x, w, bias, kernel_shape=[k, k], strides=[stride] * 2,
                        pads=[k // 2] * 4, group=groups)  # fmt: skip

    def relu6(self, x: str) -> str:
        """min(max(x, 0), 6)."""
        return self.add("Clip", x, self.held(np.float32(0)), self.held(np.float32(6)))  # type: ignore[arg-type]

    def dense(self, x: str, k: int, n: int) -> str:
        """A product with a matrix, plus a bias."""
        bias = self.held((self.random.standard_normal(n) * 0.1).astype(np.float32))
        return self.add("Add", self.add("MatMul", x, self.normal(k, n, fan=2 * k)), bias)

    def classifier(self, x: str, c: int, classes: int = 1000) -> str:
        """Global pool and Gemm."""
        flat = self.add("Flatten", self.add("GlobalAveragePool", x), axis=1)
        bias = self.held((self.random.standard_normal(classes) * 0.1).astype(np.float32))
        return self.add("Gemm", flat, self.normal(c, classes, fan=c), bias)

    def model(self, x: Sequence[int], result: str, y: Sequence[int]) -> onnx.ModelProto:
        """The whole network with the input `x`."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x))],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, list(y))],
            self.tensors,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return onnx.shape_inference.infer_shapes(model)


def mobilenet_v2(size: int = 224) -> onnx.ModelProto:
    """MobileNetV2: inverted residuals with Relu6."""
    net, c = Network("mobilenet_v2"), 32
    x = net.relu6(net.conv("x", 3, c, 3, 2))
    for expand, o, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
        (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for index in range(count):
            stride, wide = first if index == 0 else 1, c * expand
            h = x if expand == 1 else net.relu6(net.conv(x, c, wide))
            h = net.relu6(net.conv(h, wide, wide, 3, stride, wide))
            h = net.conv(h, wide, o)
            x, c = net.add("Add", x, h) if stride == 1 and c == o else h, o
    return net.model((1, 3, size, size), net.classifier(net.relu6(net.conv(x, c, 1280)), 1280),
                     (1, 1000))  # fmt: skip


def resnet18(size: int = 224) -> onnx.ModelProto:
    """ResNet-18."""
    net, c = Network("resnet18"), 64
    x = net.add("Relu", net.conv("x", 3, c, 7, 2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for o, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            h = net.add("Relu", net.conv(x, c, o, 3, stride))
            h = net.conv(h, o, o, 3)
            short = x if c == o else net.conv(x, c, o, 1, stride)
            x, c = net.add("Relu", net.add("Add", h, short)), o
    return net.model((1, 3, size, size), net.classifier(x, c), (1, 1000))


def mobilenet_v3(size: int = 224) -> onnx.ModelProto:
    """MobileNetV3 large: hard-swish, squeeze and excite with hard-sigmoid."""
    net, c = Network("mobilenet_v3"), 16

    def active(x: str, hard: bool) -> str:
        return net.add("HardSwish" if hard else "Relu", x)

    x = active(net.conv("x", 3, c, 3, 2), True)
    for k, wide, o, excite, hard, stride in (
        (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2),
        (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1),
        (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1),
        (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1),
        (5, 960, 160, 1, 1, 1),
    ):  # fmt: skip
        h = active(net.conv(x, c, wide), bool(hard)) if wide != c else x
        h = active(net.conv(h, wide, wide, k, stride, wide), bool(hard))
        if excite:
            s = net.add("Relu", net.conv(net.add("GlobalAveragePool", h), wide, wide // 4))
            h = net.add("Mul", h, net.add("HardSigmoid", net.conv(s, wide // 4, wide), alpha=1 / 6))
        h = net.conv(h, wide, o)
        x, c = net.add("Add", x, h) if stride == 1 and c == o else h, o
    x = active(net.conv(x, c, 960), True)
    return net.model((1, 3, size, size), net.classifier(x, 960), (1, 1000))


def unet(size: int = 128) -> onnx.ModelProto:
    """A small U-Net: Pad before each convolution, ConvTranspose on the way up."""
    net = Network("unet")

    def padded(x: str, c: int, o: int) -> str:
        pads = net.held(np.asarray([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
        w = net.normal(o, c, 3, 3, fan=9 * c)
        return net.add("Relu", net.add("Conv", net.add("Pad", x, pads), w, kernel_shape=[3, 3]))

    def block(x: str, c: int, o: int) -> str:
        return padded(padded(x, c, o), o, o)

    def up(x: str, c: int, o: int) -> str:
        w = net.normal(c, o, 2, 2, fan=c)
        return net.add("ConvTranspose", x, w, kernel_shape=[2, 2], strides=[2, 2])

    skips, x, c = list[tuple[str, int]](), "x", 3
    for o in (16, 32, 64):
        x, c = block(x, c, o), o
        skips.append((x, c))
        x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x, c = block(x, c, 128), 128
    for skip, o in reversed(skips):
        x = net.add("Concat", up(x, c, o), skip, axis=1)
        x, c = block(x, 2 * o, o), o
    return net.model((1, 3, size, size), net.conv(x, c, 4), (1, 4, size, size))


def bert(layers: int = 2, length: int = 64, width: int = 128, heads: int = 4) -> onnx.ModelProto:
    """A small BERT encoder after its embeddings: attention, LayerNormalization, Gelu by Erf."""
    net, x = Network("bert"), "x"
    split = net.held(np.asarray([1, length, heads, width // heads], np.int64))
    joined = net.held(np.asarray([1, length, width], np.int64))

    def normalized(x: str) -> str:
        factors = [net.held(np.ones(width, np.float32)), net.held(np.zeros(width, np.float32))]
        return net.add("LayerNormalization", x, *factors, axis=-1)

    def parts(x: str, perm: Sequence[int]) -> str:
        y = net.add("Reshape", net.dense(x, width, width), split)
        return net.add("Transpose", y, perm=list(perm))

    for _ in range(layers):
        q, k, v = (parts(x, perm) for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        root = net.held(np.asarray(np.sqrt(width / heads), np.float32))
        scores = net.add("Softmax", net.add("Div", net.add("MatMul", q, k), root), axis=-1)
        mixed = net.add("Transpose", net.add("MatMul", scores, v), perm=[0, 2, 1, 3])
        mixed = net.dense(net.add("Reshape", mixed, joined), width, width)
        x = normalized(net.add("Add", x, mixed))
        h = net.dense(x, width, 4 * width)
        error = net.add("Erf", net.add("Div", h, net.held(np.asarray(np.sqrt(2), np.float32))))
        gate = net.add("Add", error, net.held(np.asarray(1, np.float32)))
        h = net.add("Mul", net.add("Mul", h, gate), net.held(np.asarray(0.5, np.float32)))
        x = normalized(net.add("Add", x, net.dense(h, 4 * width, width)))
    return net.model((1, length, width), x, (1, length, width))


NETWORKS = {
    "mobilenet_v2": mobilenet_v2,
    "resnet18": resnet18,
    "mobilenet_v3": mobilenet_v3,
    "unet": unet,
    "bert": bert,
}
