"""Import pre-quantized ONNX models, compile them to exact integers or to a quantized ONNX graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .version import VERSION

if TYPE_CHECKING:
    from .importer import import_model as import_model
    from .ir.archive import load as load
    from .ir.coverage import Coverage as Coverage
    from .ir.coverage import NodeCoverage as NodeCoverage
    from .ir.coverage import coverage as coverage
    from .ir.errors import CompileFailure as CompileFailure
    from .ir.errors import ExportFailure as ExportFailure
    from .ir.errors import ImportFailure as ImportFailure
    from .ir.errors import IntonnxError as IntonnxError
    from .ir.errors import RunFailure as RunFailure
    from .ir.errors import TextFailure as TextFailure
    from .ir.errors import TypeFailure as TypeFailure
    from .ir.graph import Graph as Graph
    from .ir.ranges import AccumulatorRange as AccumulatorRange
    from .ir.ranges import accumulator_ranges as accumulator_ranges
    from .ir.text import parse as parse
    from .lowering.executable import Executable as Executable
    from .lowering.executable import compile_graph as compile  # noqa: A004
    from .lowering.export import to_onnx as to_onnx
    from .lowering.multipliers import multipliers as multipliers

__version__ = VERSION

# Names are looked up on first use: importing onnx or networkx takes longer than a command line
# that only prints its help may take.
_HOMES = {
    "import_model": ("importer", "import_model"),
    "load": ("ir.archive", "load"),
    "parse": ("ir.text", "parse"),
    "coverage": ("ir.coverage", "coverage"),
    "accumulator_ranges": ("ir.ranges", "accumulator_ranges"),
    "AccumulatorRange": ("ir.ranges", "AccumulatorRange"),
    "Coverage": ("ir.coverage", "Coverage"),
    "NodeCoverage": ("ir.coverage", "NodeCoverage"),
    "Graph": ("ir.graph", "Graph"),
    "compile": ("lowering.executable", "compile_graph"),
    "Executable": ("lowering.executable", "Executable"),
    "multipliers": ("lowering.multipliers", "multipliers"),
    "to_onnx": ("lowering.export", "to_onnx"),
    "IntonnxError": ("ir.errors", "IntonnxError"),
    "ImportFailure": ("ir.errors", "ImportFailure"),
    "CompileFailure": ("ir.errors", "CompileFailure"),
    "ExportFailure": ("ir.errors", "ExportFailure"),
    "RunFailure": ("ir.errors", "RunFailure"),
    "TextFailure": ("ir.errors", "TextFailure"),
    "TypeFailure": ("ir.errors", "TypeFailure"),
}

__all__ = [
    "AccumulatorRange",
    "CompileFailure",
    "Coverage",
    "Executable",
    "ExportFailure",
    "Graph",
    "ImportFailure",
    "IntonnxError",
    "NodeCoverage",
    "RunFailure",
    "TextFailure",
    "TypeFailure",
    "accumulator_ranges",
    "compile",
    "coverage",
    "import_model",
    "load",
    "multipliers",
    "parse",
    "to_onnx",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value
