"""Rules on weights and cache against a device's memory."""
