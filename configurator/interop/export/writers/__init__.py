"""One module per format that ``export --to`` knows."""
