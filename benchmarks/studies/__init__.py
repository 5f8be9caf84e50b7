"""Studies of accuracy, each run once."""
