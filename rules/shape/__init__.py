"""Rules on the geometry itself: heads, widths, depth."""
