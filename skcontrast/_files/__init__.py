"""Fitted embedders as files that run no code: numbers as safetensors, everything else as JSON."""
