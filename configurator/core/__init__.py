"""Arithmetic on plain values: no files, no clock, no framework; numpy only."""
