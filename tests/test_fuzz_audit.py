"""Random changes to real configurations never end in anything but an answer or one clear line.

``MHA_FUZZ_EXAMPLES`` says how many are tried; ``make fuzz`` tries 20,000 and more.
"""

from __future__ import annotations

import os
from typing import Any

from fuzz_audit import configurations, parses, questions, shows, survives, texts
from hypothesis import HealthCheck, given, settings

EXAMPLES = int(os.environ.get("MHA_FUZZ_EXAMPLES", "400"))
many = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@many
@given(configurations(), questions())
def test_changed_configurations(config: dict[str, Any], question: dict[str, Any]) -> None:
    survives(config, question)


@many
@given(configurations(), questions())
def test_changed_configurations_are_shown_and_exported(
    config: dict[str, Any], question: dict[str, Any]
) -> None:
    shows(config, question)


@many
@given(texts)
def test_changed_files(data: bytes) -> None:
    found = parses(data)
    if found is not None:
        survives(found, {})
