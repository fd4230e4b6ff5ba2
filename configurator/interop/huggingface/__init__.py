"""Hugging Face configurations: one mapping from ``config.json`` to a model's shape.

``read_shape`` reads the keys of every family it knows exactly as the family's class does
(defaults, null, flags that overrule keys), and an unknown family from its keys with a warning.
"""

from __future__ import annotations

from configurator.interop.huggingface.reading import Reading, read_shape

__all__ = ["Reading", "read_shape"]
