"""The files of `intonnx demo`.

`digits_qdq.onnx` is a small quantized convolutional network for 8x8 images of handwritten digits,
and `digits_test.npz` the 397 images it is tested on. Read them with `importlib.resources`.
"""
