"""Time and memory, which a release is compared by."""
