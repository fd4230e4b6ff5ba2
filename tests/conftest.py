"""What every test shares: hypothesis without deadlines and with the same examples every time, and
names that all workers agree on."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No test may depend on how fast the machine is; a fresh seed is for `make fuzz` and for people.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test named after an object's address, at which workers would part later on."""
    odd = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if odd:
        raise pytest.UsageError(f"{odd[0]} is named after an address; give its parameters ids")
