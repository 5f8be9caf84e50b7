"""Objects as JSON and tensors, and both as one file."""
