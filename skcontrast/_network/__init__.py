"""Construction of the network, and inference."""
