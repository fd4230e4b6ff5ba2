"""Rules on splitting heads and caches over devices."""
