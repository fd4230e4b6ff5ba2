"""Devices, published models and published ablations: data files that a person can edit.

Every figure names its source. The files are TOML with human units in the key; a compiled copy
in the user's cache folder makes loading quick and is rebuilt whenever a file changes.
"""
