"""What belongs to the whole process: signals, threads, torch's modes and random generators."""
