"""Layers shared by encoders and features."""
