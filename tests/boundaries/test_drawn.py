"""The table again, with parameters that hypothesis draws instead of the three seeds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from support.models import Builder

from .checking import check_drawn
from .drawing import Draw
from .patterns import Case
from .test_boundaries import TABLE

F32 = np.float32


class HypothesisDraw(Draw):
    """A model whose zero points, scales and codes hypothesis chooses."""

    def __init__(
        self,
        data: st.DataObject,
        name: str,
        storage: npt.DTypeLike,
        from_codes: bool,
        build: Builder,
    ) -> None:
        self._data = data
        self._turns: dict[str, int] = {}
        super().__init__(name, storage, from_codes, 0, build)
        # The codes themselves come from a generator: a quarter of them are extreme ones.
        self.rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="codes"))

    def near(self, scale: float) -> float:
        """A power of two, a decimal, a neighbour of a third (all rich in ties), or any scale."""
        kind = self._data.draw(st.sampled_from(["binary", "decimal", "below", "above", "any"]))
        if kind == "binary":
            return float(2.0 ** np.round(np.log2(scale)))
        if kind == "decimal":
            step = 10.0 ** np.floor(np.log10(scale))
            return float(F32(np.round(scale / step) * step))
        if kind == "any":
            return float(F32(scale * self._data.draw(st.floats(0.625, 1.5))))
        third = F32(2.0 ** np.round(np.log2(scale * 3)) / 3)
        return float(np.nextafter(third, F32(2 * (kind == "above"))))

    def _turn(self, role: str) -> int:
        """Where the zero point is: at one end, in the middle, or at the other end."""
        if role not in self._turns:
            self._turns[role] = self._data.draw(st.integers(0, 2), label=role)
        return self._turns[role]


@settings(max_examples=80)
@given(st.data(), st.sampled_from(TABLE))
def test_any_boundary_with_any_parameters(data: st.DataObject, case: Case) -> None:
    """Pattern, type, kind of graph input, scales near ties, zero points and codes are drawn."""
    pattern = case.pattern
    draw = HypothesisDraw(data, pattern.name, case.storage, case.from_codes, pattern.builder())
    check_drawn(case, pattern.model(draw), draw, case.id)
