"""Families of models. The folder is the registry: a module holds a table ``FAMILIES``."""
