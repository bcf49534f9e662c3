"""Samples from a folder: arrays and images, one sample a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from intonnx.ir.errors import RunFailure
from intonnx.ir.graph import Graph
from intonnx.ir.types import Array

from .files import about, read_arrays

_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".webp"})
_ARRAYS = frozenset({".npy", ".npz"})


def read_samples(graph: Graph, folder: Path) -> Iterator[dict[str, Array]]:
    """The samples in a folder, in the order of the files' names.

    An .npz holds an array for each input by its name; an .npy or an image is for the only input.
    An array without the first axis is a batch of one. An image becomes [1, channels, height,
    width], or with channels last where the input has them there: real values from 0 to 1, or bytes
    for an input of integers. Sizes are not changed.

    Raises RunFailure: no such folder, no samples in it, a file that cannot be read or does not fit.
    """
    if not folder.is_dir():
        raise RunFailure("there is no such folder", file=str(folder))
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in _IMAGES | _ARRAYS)
    if not files:
        raise RunFailure("no .npy, .npz or image file is in it", file=str(folder))
    needed = [name for name in graph.inputs if name not in graph.defaults]
    for file in files:
        with about(file):
            yield _sample(graph, needed, file)


def _sample(graph: Graph, needed: list[str], file: Path) -> dict[str, Array]:
    if file.suffix.lower() == ".npz":
        arrays = read_arrays(file)
        missing = [name for name in needed if name not in arrays]
        if missing:
            raise RunFailure(f"it has no array '{missing[0]}'")
        return {name: _batch(graph, name, arrays[name]) for name in needed}
    if len(needed) != 1:
        raise RunFailure(f"the model has {len(needed)} inputs: give each sample as an .npz")
    (name,) = needed
    if file.suffix.lower() == ".npy":
        (array,) = read_arrays(file).values()
        return {name: _batch(graph, name, array)}
    return {name: _image(graph, name, file)}


def _batch(graph: Graph, name: str, array: Array) -> Array:
    rank = graph.types[name].rank
    return array[np.newaxis] if rank is not None and array.ndim == rank - 1 else array


def _image(graph: Graph, name: str, file: Path) -> Array:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise RunFailure("images need Pillow: pip install 'intonnx[images]'") from None
    kind = graph.types[name]
    shape = kind.shape or ()
    if len(shape) != 4:
        raise RunFailure(f"the input '{name}' has shape {list(shape)}: no image fits")
    last = shape[1] not in (1, 3) and shape[3] in (1, 3)
    channels = shape[3] if last else shape[1]
    try:
        with Image.open(file) as image:
            pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as error:
        raise RunFailure(f"not an image that can be read: {error}") from None
    pixels = pixels[..., np.newaxis] if pixels.ndim == 2 else pixels
    if not last:
        pixels = pixels.transpose(2, 0, 1)
    if kind.dtype.is_float:
        return (pixels[np.newaxis] / np.float32(255)).astype(kind.dtype.numpy)
    return pixels[np.newaxis].astype(kind.dtype.numpy)
