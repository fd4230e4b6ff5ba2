"""Rules on what engines and decoding want."""
