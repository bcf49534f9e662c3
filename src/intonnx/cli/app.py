"""The commands. Each imports what it needs when it runs, so that `--help` needs none of it."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from intonnx import __version__
from intonnx.lowering.numerics import Numerics

from .program import Program

app = typer.Typer(
    name="intonnx",
    cls=Program,
    help="Import pre-quantized ONNX models, run them in exact integers, or export a QLinear graph.",
    epilog="Exit codes: 0 done, 1 the answer is no (verify failed), 2 bad use or bad input.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX model, or a saved graph.")]
InputFiles = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="NAME=FILE.npy",
                 help="Array for one input; or one .npz with all of them. Repeatable."),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

EXAMPLES = {
    "inspect": (
        "intonnx inspect model.onnx",
        "intonnx inspect model.onnx --json > coverage.json",
    ),
    "compile": (
        "intonnx compile model.onnx -o qlinear.onnx",
        "intonnx compile model.onnx -o model.pyz --numerics fixed",
    ),
    "run": ("intonnx run model.onnx -i x=image.npy -o outputs.npz --trace trace.npz",),
    "verify": (
        "intonnx verify model.onnx",
        "intonnx verify model.onnx --against float.onnx --data samples",
    ),
    "report": ("intonnx report model.onnx -o report.html",),
    "diff": ("intonnx diff before.onnx after.onnx",),
    "demo": ("intonnx demo -o folder",),
}


def _examples(command: str) -> str:
    """What the help of a command ends with."""
    return "\n\n".join(["For example:", *(f"  {line}" for line in EXAMPLES[command])])


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"intonnx {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What every command shares."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog=_examples("inspect"))
def inspect(
    model: Model,
    as_json: AsJson = False,
    text: Annotated[bool, typer.Option("--text", help="Print the graph in text form.")] = False,
    dot: Annotated[
        bool, typer.Option("--dot", help="Print it for Graphviz: colored by integer and float.")
    ] = False,
    ranges: Annotated[
        bool,
        typer.Option("--ranges", help="Print what every accumulator can reach, proven from the "
                                      "weights; with --json for each channel."),
    ] = False,
    mlir: Annotated[
        bool, typer.Option("--mlir", help="Print it as MLIR, with !quant.uniform types.")
    ] = False,
) -> None:  # fmt: skip
    """Say what is integer, what is float, and why."""
    from intonnx.ir.dot import print_dot
    from intonnx.ir.mlir import print_mlir

    from .files import open_graph
    from .inspection import inspect_graph, show_inspection
    from .progress import working
    from .ranges import show_ranges

    if as_json + text + mlir + dot > 1:
        raise typer.BadParameter("--json, --text, --mlir and --dot exclude each other")
    if ranges and (text or mlir or dot):
        raise typer.BadParameter("--ranges goes with --json, or alone")
    with working("importing"):
        graph = open_graph(model)
    if text:
        print(graph)
    elif mlir:
        print(print_mlir(graph), end="")
    elif dot:
        print(print_dot(graph), end="")
    elif as_json:
        print(inspect_graph(graph, model, ranges=ranges).model_dump_json(indent=2))
    elif ranges:
        show_ranges(inspect_graph(graph, model, ranges=True))
    else:
        show_inspection(inspect_graph(graph, model))


@app.command(epilog=_examples("compile"))
def compile(  # noqa: A001
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="File to write.")],
    target: Annotated[
        Literal["onnx", "integer"] | None,
        typer.Option(help="A quantized ONNX model, or a graph that `run` executes in integers "
                          "(default: integer if OUT ends in .intonnx or .pyz, else onnx)."),
    ] = None,
    numerics: Annotated[
        Numerics | None, typer.Option(help="For integer: the arithmetic (default qlinear).")
    ] = None,
    form: Annotated[
        Literal["qlinear", "qdq"] | None,
        typer.Option(help="For onnx: QLinear operators, or DQ -> op -> Q (default qlinear)."),
    ] = None,
    runtime: Annotated[
        Literal["onnxruntime", "standard"] | None,
        typer.Option(help="For onnx: with com.microsoft operators or ai.onnx only "
                          "(default onnxruntime)."),
    ] = None,
    cpu: Annotated[
        Literal["x86", "x86-vnni", "arm"] | None,
        typer.Option(help="For onnx: the processor that onnxruntime is to be fast and exact on; "
                          "x86 is also exact on those with VNNI (default x86)."),
    ] = None,
    opset: Annotated[
        int | None,
        typer.Option(help="For onnx: the opset of ai.onnx (default: the model's own where its "
                          "codes can be written at it)."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="For onnx: name the operators whose kernels do not promise "
                                       "the bits of the integer execution, and say why."),
    ] = False,
) -> None:  # fmt: skip
    """Write a QLinear or QDQ model, an integer graph, or a program.

    For integer, an OUT that ends in .pyz is a program, one file that needs Python and numpy alone:
    python OUT.pyz --input x=image.npy -o out.npz
    """
    from .compilation import write_integer, write_onnx, write_standalone
    from .files import check_output

    target = target or ("integer" if output.suffix in (".intonnx", ".pyz") else "onnx")
    if target == "onnx" and numerics is not None:
        raise typer.BadParameter("--numerics goes with --target integer")
    if target == "integer" and (explain or {form, runtime, cpu, opset} != {None}):
        raise typer.BadParameter(
            "--form, --runtime, --cpu, --opset and --explain go with --target onnx"
        )
    check_output(output, model)
    if target == "onnx":
        target_runtime = runtime or "onnxruntime"
        target_form, target_cpu = form or "qlinear", cpu or "x86"
        write_onnx(model, output, target_form, target_runtime, target_cpu, opset, explain=explain)
    elif output.suffix == ".pyz":
        write_standalone(model, output, numerics or "qlinear")
    else:
        write_integer(model, output, numerics or "qlinear")


@app.command(epilog=_examples("run"))
def run(
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.npz", help="File for the outputs.")
    ],
    inputs: InputFiles = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="OUT.npz", help="File for every inner value, by name, with its type."),
    ] = None,
    hexadecimal: Annotated[
        Path | None,
        typer.Option("--hex", metavar="FOLDER",
                     help="New folder for every value, weights too, in files for $readmemh."),
    ] = None,
    header: Annotated[
        Path | None,
        typer.Option(metavar="OUT.h",
                     help="C header of weights, tables, multipliers and shifts (numerics fixed)."),
    ] = None,
    numerics: Annotated[
        Numerics | None,
        typer.Option(help="The arithmetic (default: that of the saved graph, else qlinear)."),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Print time and memory of each operator.")
    ] = False,
    profile_trace: Annotated[
        Path | None,
        typer.Option(metavar="OUT.json",
                     help="The same as trace events, for Perfetto or chrome://tracing."),
    ] = None,
) -> None:  # fmt: skip
    """Run a model in integers on arrays from files.

    MODEL may also be a graph that `compile --target integer` wrote.
    """
    from .execution import run_model
    from .files import check_output

    for path in (output, trace, header, profile_trace):
        if path is not None:
            check_output(path, model)
    run_model(
        model, inputs or [], output, trace, hexadecimal, header, numerics, profile, profile_trace
    )


@app.command(epilog=_examples("verify"))
def verify(
    model: Model,
    inputs: InputFiles = None,
    max_quanta: Annotated[
        float,
        typer.Option(min=0, help="Largest difference of one operator that is fed the reference's "
                                 "values. It does not grow with the depth of the model."),
    ] = 1,
    samples: Annotated[int, typer.Option(min=1, help="Number of random inputs.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")] = 0,
    batch: Annotated[
        int, typer.Option(min=1, help="Size of the first axis of random inputs if not fixed.")
    ] = 1,
    dim: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SIZE", help="Size of another symbolic axis, also '?'; else 1."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of samples: .npz, .npy or images, one a file."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="qdq|onnxruntime|FLOAT.onnx",
                     help="What to compare with; without it the first two. A float model shows "
                          "which layers lose most. Repeatable."),
    ] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Print every value: differences, ties, SQNR, cosine.")
    ] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Compare with the QDQ meaning, onnxruntime and a float model.

    The integer execution is held against the literal QDQ meaning of the model and, where it is
    installed, against onnxruntime on the model and on what `compile` writes.

    Each operator is fed the operand values of the reference, so that one limit, by default one
    quantum, holds for every operator. Without --input, inputs are random over the ranges that the
    model's quantizers cover. Exit code 1 when a difference is beyond its limit.
    """
    from .verifying import RandomInputs, show_values, show_verification, verify_model

    sizes = [_size(text) for text in dim or []]
    random = RandomInputs(samples=samples, seed=seed, batch=batch, sizes=dict(sizes))
    if inputs and data is not None:
        raise typer.BadParameter("give --input or --data, not both")
    if math.isnan(max_quanta):
        raise typer.BadParameter("--max-quanta nan: a number is wanted")
    report = verify_model(model, inputs or [], random, max_quanta, against or [], data)
    if as_json:
        print(report.model_dump_json(indent=2))
    else:
        if values:
            show_values(report)
            print()
        show_verification(report)
    if not report.passed:
        raise typer.Exit(1)


@app.command(epilog=_examples("report"))
def report(
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="REPORT.html", help="Page to write.")
    ],
    inputs: InputFiles = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of random inputs.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")] = 0,
) -> None:
    """Write a page to look at: the graph, what is float and why, ranges, histograms, errors.

    One file that opens offline. Histograms come from --input, or from random inputs over the
    ranges of the model's quantizers.
    """
    from .files import check_output
    from .reporting import make_report

    check_output(output, model)
    make_report(model, output, inputs or [], samples, seed)


@app.command(epilog=_examples("diff"))
def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="ONNX model, or a saved graph.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    as_json: AsJson = False,
) -> None:
    """Say what differs between two models: parameters, quantizers, weights, operators.

    Values correspond by name, then by what computes them. Exit code 1 when anything differs.
    """
    from .differing import diff_models, show_differences

    found = diff_models(first, second)
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        show_differences(found)
    if found.differences:
        raise typer.Exit(1)


def _size(text: str) -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    if not name or not size.isdecimal() or int(size) == 0:
        raise typer.BadParameter(f"--dim {text}: NAME=SIZE is wanted, such as height=224")
    return name, int(size)


@app.command(epilog=_examples("demo"))
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where its files go.")
    ] = Path("intonnx-demo"),
) -> None:
    """Take a small digits network through everything."""
    from intonnx.demo import run_demo

    run_demo(output)
