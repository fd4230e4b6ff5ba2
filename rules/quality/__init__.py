"""Rules on what published ablations say a choice costs."""
