"""Objects as JSON and tensors, in one file."""
