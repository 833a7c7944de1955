"""Parts of the latent world model: what an observation is coded as, and what remembers the codes.

Shapes: B rows, T steps, C numbers of a code, I of what a memory reads per step, H of a belief.
"""

import torch
from torch import Tensor, nn


class VectorCodec(nn.Module):
    """A vector is its own code, in units of its spread over real training rows."""

    centre: Tensor
    scale: Tensor

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    def fit(self, observation: Tensor) -> None:
        """What never varies is coded as its difference from the mean."""
        spread = observation.std(0)
        self.centre.copy_(observation.mean(0))
        self.scale.copy_(torch.where(spread < 1e-3, 1.0, spread))

    def encode(self, observation: Tensor) -> Tensor:
        return (observation - self.centre) / self.scale

    def decode(self, code: Tensor) -> Tensor:
        return code * self.scale + self.centre

    def shown(self, observation: Tensor) -> Tensor:
        """As the policy sees it."""
        return observation

    def loss(self, code: Tensor, observation: Tensor) -> Tensor:
        """Nothing is lost."""
        return code.new_zeros(())


class ImageCodec(nn.Module):
    """Three convolutions to a code of no mean and unit length per number, and three back; images [..., H, W, C] are
    uint8, or floats between 0 and 1."""

    centre: Tensor
    contrast: Tensor

    def __init__(self, shape: tuple[int, ...], size: int):
        super().__init__()
        self.size, self.shape = size, shape
        channels, corner = shape[-1], tuple(-(-side // 8) for side in shape[:2])
        self.eye = nn.Sequential(
            nn.Conv2d(channels, 16, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * corner[0] * corner[1], size),
            nn.LayerNorm(size, elementwise_affine=False),
        )
        self.screen = nn.Sequential(
            nn.Linear(size, 32 * corner[0] * corner[1]),
            nn.ReLU(),
            nn.Unflatten(1, (32, *corner)),
            nn.ConvTranspose2d(32, 32, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, channels, 4, 2, 1),
        )
        self.register_buffer("centre", torch.zeros(shape))
        self.register_buffer("contrast", torch.ones(1))

    def shown(self, observation: Tensor) -> Tensor:
        """As the policy sees it: between 0 and 1."""
        return observation / 255 if observation.dtype == torch.uint8 else observation

    def fit(self, observation: Tensor) -> None:
        """The mean picture, and how much pixels differ from it, over real training rows."""
        pictures = self.shown(observation)
        self.centre.copy_(pictures.mean(0))
        self.contrast.copy_((pictures - self.centre).pow(2).mean().sqrt().clamp(min=1e-3))

    def encode(self, observation: Tensor) -> Tensor:
        pixels = self._differences(observation).movedim(-1, -3)
        return self.eye(pixels.flatten(0, -4)).unflatten(0, pixels.shape[:-3])

    def decode(self, code: Tensor) -> Tensor:
        return (self.centre + self._paint(code) * self.contrast).clamp(0, 1)

    def _differences(self, observation: Tensor) -> Tensor:
        return (self.shown(observation) - self.centre) / self.contrast

    def _paint(self, code: Tensor) -> Tensor:
        height, width, _ = self.shape
        pixels = self.screen(code.flatten(0, -2))[:, :, :height, :width]
        return pixels.movedim(1, -1).unflatten(0, code.shape[:-1])

    def loss(self, code: Tensor, observation: Tensor) -> Tensor:
        """Mean squared error of what the codes look like, in units of the contrast."""
        return (self._paint(code) - self._differences(observation)).pow(2).mean()


class GRUMemory(nn.Module):
    """A belief that every step changes."""

    def __init__(self, inputs: int, size: int):
        super().__init__()
        self.cell, self.size = nn.GRUCell(inputs, size), size

    def begin(self, rows: int, device: torch.device) -> Tensor:
        """float32 [B, H] the belief before anything was seen."""
        return torch.zeros(rows, self.size, device=device)

    def update(self, belief: Tensor, seen: Tensor) -> Tensor:
        """The belief after one more step float32 [B, I]."""
        return self.cell(seen, belief)

    def read(self, belief: Tensor) -> Tensor:
        """float32 [B, H] what the predictions are made from."""
        return belief


class AttentionMemory(nn.Module):
    """The newest steps themselves, and a Transformer block in which the newest one looks at all of them.

    A belief is float32 [B, steps, I + 1], oldest first; the last number is 1 where a step was seen.
    """

    def __init__(self, inputs: int, size: int, steps: int):
        super().__init__()
        self.shape = (steps, inputs + 1)
        self.token = nn.Linear(inputs, size)
        self.age = nn.Parameter(torch.randn(steps, size) * 0.1)
        self.attention = nn.MultiheadAttention(size, 4, batch_first=True)
        self.think = nn.Sequential(
            nn.LayerNorm(size), nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, size)
        )
        self.norm = nn.LayerNorm(size)

    def begin(self, rows: int, device: torch.device) -> Tensor:
        return torch.zeros(rows, *self.shape, device=device)

    def update(self, belief: Tensor, seen: Tensor) -> Tensor:
        newest = torch.cat([seen, torch.ones_like(seen[:, :1])], 1)
        return torch.cat([belief[:, 1:], newest[:, None]], 1)

    def read(self, belief: Tensor) -> Tensor:
        tokens = self.norm(self.token(belief[..., :-1]) + self.age)
        newest = tokens[:, -1:]
        looked, _ = self.attention(
            newest, tokens, tokens, key_padding_mask=belief[..., -1] == 0, need_weights=False
        )
        thought = (newest + looked)[:, 0]
        return thought + self.think(thought)
