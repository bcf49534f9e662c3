"""Find the modules of a folder, so that adding an operator means adding a file."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable


def loader(package: str, path: Iterable[str]) -> Callable[[], None]:
    """A function that imports every module of the package, once, in the order of their names."""

    @functools.cache
    def load_all() -> None:
        for module in sorted(found.name for found in pkgutil.iter_modules(path)):
            importlib.import_module(f"{package}.{module}")

    return load_all
