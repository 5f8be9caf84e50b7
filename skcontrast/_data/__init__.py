"""From what a user passes as X to batches on the device."""
