"""Any latent ``Dynamics`` as a world: a window of (latent, action) rows, and heads given as a function.

Legend: B rows, W window, L latent size, A numbers of an action.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor

from preplay.rehearsal._world import ImaginedStep
from preplay.world_model import Dynamics

Outcome = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(condition [B, W, L + A], next latent [B, L]) to (reward [B], termination probability [B])."""


@dataclass(frozen=True)
class DynamicsWorld:
    """Latents are observations. The condition's newest row holds the newest latent and the action, one-hot or as is.

    A state is float32 [B, W * (L + A) + 1]: the window, newest row last, and the number of steps taken.

    Args:
        dynamics: Draws the next latent.
        outcome: Reward and termination heads.
        latent: L.
        actions: The action space.
        window: W rows that the dynamics look at.
        horizon: Steps after which a session is cut; None if it never is.
    """

    dynamics: Dynamics
    outcome: Outcome
    latent: int
    actions: Discrete | Box
    window: int = 1
    horizon: int | None = None

    @property
    def action_space(self) -> Discrete | Box:
        """As given."""
        return self.actions

    @property
    def observation_space(self) -> Box:
        """The newest latent."""
        return Box(-np.inf, np.inf, (self.latent,), np.float32)

    @property
    def noise_dim(self) -> int:
        """The dynamics'."""
        return self.dynamics.noise_dim

    def start(self, latent: np.ndarray) -> np.ndarray:
        """States of sessions that begin with these latents (float32 [B, L]); earlier rows are zeros."""
        window = np.zeros((len(latent), self.window, self._row), np.float32)
        window[:, -1, : self.latent] = latent
        return np.concatenate([window.reshape(len(latent), -1), np.zeros((len(latent), 1), np.float32)], 1)

    def observe(self, state: np.ndarray) -> np.ndarray:
        """float32 [B, L]."""
        return self._window(state)[:, -1, : self.latent]

    @torch.inference_mode()
    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> ImaginedStep:
        """Put the action beside the newest latent, draw the next one, and ask the heads."""
        window = self._window(state).copy()
        window[:, -1, self.latent :] = self._action_rows(action)
        condition = torch.from_numpy(window)
        latent = self.dynamics.step(condition, torch.from_numpy(noise.astype(np.float32)))
        reward, terminated = self.outcome(condition, latent)
        newest = np.zeros((len(state), 1, self._row), np.float32)
        newest[:, 0, : self.latent] = latent.cpu().numpy()
        after = np.concatenate([window[:, 1:], newest], 1).reshape(len(state), -1)
        taken = state[:, -1:] + 1
        return ImaginedStep(
            np.concatenate([after, taken], 1),
            reward.double().cpu().numpy(),
            terminated.double().cpu().numpy(),
            taken[:, 0] >= (np.inf if self.horizon is None else self.horizon),
            np.zeros(len(state)),
        )

    @property
    def _row(self) -> int:
        size = self.actions.n if isinstance(self.actions, Discrete) else np.prod(self.actions.shape)
        return self.latent + int(size)

    def _window(self, state: np.ndarray) -> np.ndarray:
        return state[:, :-1].reshape(len(state), self.window, self._row)

    def _action_rows(self, action: np.ndarray) -> np.ndarray:
        if isinstance(self.actions, Discrete):
            return np.eye(int(self.actions.n), dtype=np.float32)[action]
        return action.reshape(len(action), -1).astype(np.float32)
