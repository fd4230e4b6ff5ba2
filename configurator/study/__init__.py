"""The lesson's exercises, run with several seeds and answered from their own numbers."""
