"""Published models: parameters to the last one, and what one more token adds."""

from __future__ import annotations

import pytest
from published_configs import PUBLISHED

from configurator.interop.audit import audit

_COUNTED = {name: row for name, row in PUBLISHED.items() if row[1] is not None}
_GROWING = {name: row for name, row in PUBLISHED.items() if row[2] is not None}


@pytest.mark.parametrize("name", _COUNTED)
def test_parameters(name: str) -> None:
    config, params, _ = PUBLISHED[name]
    answer = audit(config)
    assert answer.known
    assert answer.params_total == params


@pytest.mark.parametrize("name", _GROWING)
def test_growth_of_the_cache(name: str) -> None:
    config, _, growth = PUBLISHED[name]
    answer = audit(config, kv_dtype="int8")  # one byte a value
    assert answer.known
    assert answer.kv_bytes_per_token_past_window == growth
