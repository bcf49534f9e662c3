"""Watch what functions hold in their variables and return while a graph runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

Trace = Callable[[FrameType, str, Any], Any]


@contextmanager
def float_arrays_in(
    *folders: str, apart_from: tuple[str, ...] = (), constants: Iterable[Any] = ()
) -> Generator[set[str], None, None]:
    """Collect the functions under these folders that hold a float array, as `file.py function`.

    Every local variable is looked at before every line, lists and tuples of arrays too, and every
    value that is returned. Files of `apart_from` are not watched, and `constants` do not count.
    """
    ignored = {id(array) for array in constants}
    found: set[str] = set()

    def watch(frame: FrameType, event: str, value: Any) -> Trace | None:
        code = frame.f_code
        path = code.co_filename
        name = path.rsplit("/", 1)[-1]
        if not any(f"/{folder}/" in path for folder in folders) or name in apart_from:
            return None

        def local(frame: FrameType, event: str, value: Any) -> Trace:
            held = (
                [*frame.f_locals.values(), value] if event == "return" else frame.f_locals.values()
            )
            arrays = (array for one in held for array in _arrays(one))
            if any(array.dtype.kind in "fc" and id(array) not in ignored for array in arrays):
                found.add(f"{name} {code.co_name}")
            return local

        return local

    previous = sys.gettrace()
    sys.settrace(watch)
    try:
        yield found
    finally:
        sys.settrace(previous)


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray | np.generic):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
