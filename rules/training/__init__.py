"""Rules on what training a model of this shape wants."""
