"""What a network sees of the last W turns: side by side, through a GRU, or through a Transformer.

Condition rows are float32 [B, W, F], newest turn last; the last feature of each turn is 1 where the turn exists.
"""

import torch
from torch import Tensor, nn

HIDDEN = 128


class WindowMemory(nn.Module):
    """The turns side by side, float32 [B, W * F]."""

    def __init__(self, window: int, features: int):
        super().__init__()
        self.size = window * features

    def forward(self, condition: Tensor) -> Tensor:
        return condition.flatten(1)


class GRUMemory(nn.Module):
    """A GRU over the turns beside the newest turn; turns before the start leave its state at zero."""

    def __init__(self, window: int, features: int):
        super().__init__()
        self.cell = nn.GRUCell(features, HIDDEN)
        self.size = HIDDEN + features

    def forward(self, condition: Tensor) -> Tensor:
        state = condition.new_zeros(len(condition), HIDDEN)
        for turn in condition.unbind(1):
            state = torch.where(turn[:, -1:] > 0, self.cell(turn, state), state)
        return torch.cat([state, condition[:, -1]], -1)


class TransformerMemory(nn.Module):
    """Two attention layers over the turns, read at the newest one, beside the newest turn."""

    def __init__(self, window: int, features: int):
        super().__init__()
        self.embed = nn.Linear(features, HIDDEN)
        # Positions count back from the newest turn, so that a longer past does not move the recent one.
        self.position = nn.Parameter(torch.randn(window, HIDDEN) * 0.02)
        layer = nn.TransformerEncoderLayer(
            HIDDEN, 4, 2 * HIDDEN, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.size = HIDDEN + features

    def forward(self, condition: Tensor) -> Tensor:
        absent = condition[..., -1] <= 0
        tokens = self.layers(self.embed(condition) + self.position, src_key_padding_mask=absent)
        return torch.cat([tokens[:, -1], condition[:, -1]], -1)


MEMORIES: dict[str, type[WindowMemory] | type[GRUMemory] | type[TransformerMemory]] = {
    "window": WindowMemory,
    "gru": GRUMemory,
    "transformer": TransformerMemory,
}
