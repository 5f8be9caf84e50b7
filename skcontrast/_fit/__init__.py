"""Training: from parameters and X to a fitted network."""
