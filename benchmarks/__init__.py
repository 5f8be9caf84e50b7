"""Measured figures: speed, which releases are compared by, and studies, each run once."""
