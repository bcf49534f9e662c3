"""The table of `intonnx run --profile`."""

from __future__ import annotations

from collections.abc import Sequence

from intonnx.lowering.profile import OperatorProfile

from .display import percent, show, show_table


def show_profile(steps: Sequence[OperatorProfile]) -> None:
    """Print the steps of a run, those that take longest first, and the sums."""
    whole = sum(step.seconds for step in steps)
    rows = [
        (
            step.node,
            " + ".join(step.operators[1:]),
            f"{step.seconds * 1e3:.3f} ms",
            percent(round(step.seconds * 1e9), round(whole * 1e9)),
            _bytes(step.result_bytes),
            _bytes(step.scratch_bytes),
        )
        for step in sorted(steps, key=lambda step: -step.seconds)
    ]
    headers = ("operator", "with", "time", "share", "result", "allocated")
    show_table(headers, rows, right=(2, 3, 4, 5))
    peak = max((step.live_bytes for step in steps), default=0)
    show(f"{len(steps)} steps, {whole * 1e3:.3f} ms; live values at most {_bytes(peak)}")


def _bytes(count: int) -> str:
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / 2**10:.1f} KiB" if count < 1 << 20 else f"{count / 2**20:.1f} MiB"
