"""Layers that encoders and features share, most of them not trained by gradient."""
