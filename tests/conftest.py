"""Settings that every test shares: hypothesis without deadlines, the same examples every time."""

from __future__ import annotations

import os

from hypothesis import settings

# No test may depend on how fast the machine is; a fresh seed is for `make fuzz` and for people.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
