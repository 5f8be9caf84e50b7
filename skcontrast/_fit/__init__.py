"""A fit: from parameters and X to all that a fitted embedder holds."""
