from __future__ import annotations

import numpy as np
import pytest

from configurator.core.errors import UsageError
from configurator.core.examples import example_device
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.latency import predict_latency

GQA = GroupedQuery(d_model=4096, n_heads=32, n_kv_heads=8, d_head=128)


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_column_equals_numbers(phase):
    contexts = np.array([1, 64, 1024, 8192, 131072])
    column = predict_latency(GQA, example_device(), phase=phase, context=contexts)
    numbers = [
        predict_latency(GQA, example_device(), phase=phase, context=int(n)) for n in contexts
    ]
    assert np.allclose(column, numbers, rtol=1e-12)


def test_unknown_phase_names_the_known_ones():
    with pytest.raises(UsageError, match="write decode or prefill"):
        predict_latency(GQA, example_device(), phase="train")
