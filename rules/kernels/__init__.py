"""Rules on what attention kernels are compiled for."""
