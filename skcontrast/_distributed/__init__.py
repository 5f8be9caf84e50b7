"""One fit on several processes."""
