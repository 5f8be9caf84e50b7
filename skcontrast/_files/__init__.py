"""Fitted embedders as files that run no code: numbers as safetensors, all else as JSON."""
