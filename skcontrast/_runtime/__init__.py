"""State of the whole process: signals, threads, torch's modes and random generators."""
