"""The networks: parts of an action pooled by attention, joined with structure and state, then a small MLP.

Legend: B rows, F features, S state features, C parts, D embedding, W width, O outputs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class NetworkSize:
    """Sizes of inputs and layers; ``embedding`` 0 means structure alone."""

    state: int
    features: int
    embedding: int
    width: int
    outputs: int


@dataclass(frozen=True)
class Inputs:
    """One row per action: state [B, S], state_embedding [B, D], features [B, F], parts [B, C, D], exists [B, C]."""

    state: Tensor
    state_embedding: Tensor
    features: Tensor
    parts: Tensor
    exists: Tensor

    def rows(self, index: Tensor) -> "Inputs":
        """These rows."""
        fields = (self.state, self.state_embedding, self.features, self.parts, self.exists)
        return Inputs(*(value[index] for value in fields))


class AttentionPool(nn.Module):
    """One learned query over the parts of an action; parts that do not exist get no weight."""

    def __init__(self, dimension: int, width: int):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(dimension))
        self.out = nn.Linear(dimension, width)

    def forward(self, parts: Tensor, exists: Tensor) -> Tensor:
        score = (parts @ self.query) * parts.shape[-1] ** 0.5
        weight = torch.softmax(score.masked_fill(~exists, -torch.inf), dim=1)
        return self.out((weight[..., None] * parts).sum(dim=1))


class StateNet(nn.Module):
    """State to [B, O]: V of IQL, and the state's half of :class:`ActionNet`."""

    def __init__(self, size: NetworkSize, outputs: int):
        super().__init__()
        self.numbers = nn.Linear(size.state, size.width)
        self.text = nn.Linear(size.embedding, size.width) if size.embedding else None
        self.head = nn.Sequential(nn.ReLU(), nn.LayerNorm(size.width), nn.Linear(size.width, outputs))

    def forward(self, inputs: Inputs) -> Tensor:
        hidden = self.numbers(inputs.state)
        if self.text is not None:
            hidden = hidden + self.text(inputs.state_embedding)
        return self.head(hidden)


class ActionNet(nn.Module):
    """State and action to [B, O]: Q, or the logits of a policy."""

    def __init__(self, size: NetworkSize):
        super().__init__()
        self.state = StateNet(size, size.width)
        self.structure = nn.Linear(size.features, size.width)
        self.direct = nn.Linear(
            size.features, size.outputs
        )  # what is linear need not be learned through layers
        self.pool = AttentionPool(size.embedding, size.width) if size.embedding else None
        self.trunk = nn.Sequential(
            nn.ReLU(),
            nn.LayerNorm(size.width),
            nn.Linear(size.width, size.width),
            nn.ReLU(),
            nn.Linear(size.width, size.outputs),
        )

    def forward(self, inputs: Inputs) -> Tensor:
        hidden = self.structure(inputs.features) + self.state(inputs)
        if self.pool is not None:
            hidden = hidden + self.pool(inputs.parts, inputs.exists)
        return self.trunk(hidden) + self.direct(inputs.features)


class TwinQ(nn.Module):
    """Two independent Q networks; their minimum is the cautious estimate."""

    def __init__(self, size: NetworkSize):
        super().__init__()
        self.first, self.second = ActionNet(size), ActionNet(size)

    def both(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Both estimates, [B, O] each."""
        return self.first(inputs), self.second(inputs)

    def forward(self, inputs: Inputs) -> Tensor:
        return torch.minimum(*self.both(inputs))
