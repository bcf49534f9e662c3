"""The source files that a program needs: those that its roots import, and what these import."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator
from importlib.abc import InspectLoader

PRODUCT, VALIDATION = "intonnx", "pydantic"
STAND_IN = f"{PRODUCT}.standalone.records"


def closure(roots: Iterable[str]) -> dict[str, str]:
    """The source of every module of the product that the roots need, by module name.

    Imports at the top of a module count; those inside functions are for what a program does not
    do. Parents of a module are among them.
    """
    found: dict[str, str] = {}
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        source = _source(name)
        found[name] = source
        waiting += [imported for imported in _imports(name, source) if imported not in found]
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    return found


def is_package(name: str) -> bool:
    """Whether the module of this name is a package."""
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def moved(source: str, home: str) -> str:
    """The source with the product's imports taken from the package `home` instead."""
    pattern = rf"^([ \t]*(?:from|import)[ \t]+){PRODUCT}(?=[.\s])"
    source = re.sub(pattern, rf"\g<1>{home}", source, flags=re.MULTILINE)
    stand_in = STAND_IN.replace(PRODUCT, home, 1)
    return re.sub(
        rf"^(from[ \t]+){VALIDATION}(?=[ \t]+import)",
        rf"\g<1>{stand_in}",
        source,
        flags=re.MULTILINE,
    )


def _source(name: str) -> str:
    if name == PRODUCT:
        # The verbs of the product are not those of a program.
        return '"""The parts of intonnx that this model needs."""\n'
    spec = importlib.util.find_spec(name)
    loader = None if spec is None else spec.loader
    text = loader.get_source(name) if isinstance(loader, InspectLoader) else None
    if text is None:
        raise ImportError(f"the source of {name} is not at hand", name=name)
    return text


def _imports(name: str, source: str) -> Iterator[str]:
    package = name if is_package(name) else name.rpartition(".")[0]
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _ours(alias.name))
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, package)


def _from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    module = node.module or ""
    if node.level:
        module = importlib.util.resolve_name("." * node.level + module, package)
    if module == VALIDATION:
        yield STAND_IN
    if not _ours(module):
        return
    yield module
    if is_package(module):
        for alias in node.names:
            if importlib.util.find_spec(f"{module}.{alias.name}") is not None:
                yield f"{module}.{alias.name}"


def _ours(module: str) -> bool:
    return module.split(".")[0] == PRODUCT
