"""Files of fitted embedders: arrays as safetensors, the rest as JSON."""
