"""State of the process: device, memory, threads and random generators."""
