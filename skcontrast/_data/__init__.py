"""Array-likes, metadata and batches on the device."""
