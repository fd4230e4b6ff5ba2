"""The advisor against published models: what it would have said, and what their teams chose.

Nothing here is seen by the advisor: it gets a request as a user would write it, and its answer
is compared afterwards. A model's own geometry, its name and its neighbours play no part.
"""

from __future__ import annotations

from configurator.backtest.population import Subject, subjects
from configurator.backtest.run import Backtest, backtest

__all__ = ["Backtest", "Subject", "backtest", "subjects"]
