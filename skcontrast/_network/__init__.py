"""The trained network: built, and used in inference."""
