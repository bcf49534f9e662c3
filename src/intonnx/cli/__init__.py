"""The command line. Importing it imports neither onnx nor networkx: `--help` must be quick."""

from __future__ import annotations

import sys
import warnings


def main() -> None:
    """Run the command line with the arguments of the process; ends the process."""
    from .app import app

    if not sys.warnoptions:
        # What a library warns of is for developers; `python -W` shows it.
        warnings.simplefilter("ignore")
    app()


__all__ = ["main"]
