"""What every accumulator can reach: the answer of `intonnx inspect --ranges`."""

from __future__ import annotations

from intonnx.ir.ranges import AccumulatorRange

from .display import show, show_table
from .inspection import Inspection, range_lines


def show_ranges(inspection: Inspection) -> None:
    """Print a row for each accumulating operator: its worst channel, and what can go wrong."""
    ranges = inspection.ranges or ()
    if not ranges:
        show(f"{inspection.file}: no operator adds up integers")
        return
    show(f"{inspection.file}: what accumulators can reach, by the worst channel")
    headers = ("operator", "kind", "channels", "worst", "lowest", "highest", "bits",
               "beyond int32", "int16 hazard")  # fmt: skip
    show_table(headers, [_row(entry) for entry in ranges], right=(2, 3, 4, 5, 6, 7, 8))
    show()
    lines = range_lines(inspection)
    for line in lines or ["every sum fits int32, and no pair of products leaves int16"]:
        show(line)


def _row(entry: AccumulatorRange) -> tuple[object, ...]:
    low, high = entry.worst
    channels = len(entry.low)
    return (
        entry.name,
        entry.op,
        channels if channels > 1 else "all",
        entry.worst_channel if channels > 1 else "",
        low,
        high,
        entry.bits,
        _affected(entry.int32_overflow),
        _affected(entry.int16_saturation),
    )


def _affected(channels: tuple[bool, ...]) -> str:
    """How many channels are affected; "-" for none."""
    count = sum(channels)
    if not count:
        return "-"
    return "all" if count == len(channels) else str(count)
