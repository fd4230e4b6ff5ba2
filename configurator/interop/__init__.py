"""Other people's files: configurations read as they are on disk, and settings written for them."""
