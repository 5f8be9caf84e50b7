"""State of the process: device, memory, threads, modes of torch and random generators."""
