"""Real against imagined episodes as pictures: the same actions in the world, and open-loop in the world model."""

import functools
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from minigrid.core.grid import Grid
from minigrid.core.world_object import WorldObj
from PIL import Image
from ray.rllib.core.learner.learner import Learner

from preplay_rllib import _belief
from preplay_rllib._engine import call_first
from preplay_rllib._imagine import learner_modules
from preplay_rllib._minigrid import COLOURS, STATES, UNSEEN, VIEW, MiniGrid, unflatten
from preplay_rllib._transitions import explore

_TILE, _GAP = 12, 6
_LATE = 10**9
_AGENT = (VIEW // 2, VIEW - 1)


@dataclass(frozen=True)
class Film:
    """Views uint8 [T + 1, 7, 7] of one episode: ``real``, and ``imagined`` from its first view and its actions."""

    real: np.ndarray
    imagined: np.ndarray

    @property
    def exact_steps(self) -> int:
        """Steps until the first cell that differs."""
        differs = (self.real != self.imagined).reshape(len(self.real), -1).any(1)
        return int(differs.argmax()) if differs.any() else len(differs) - 1


def film_episode(algorithm: Any, env_config: dict[str, Any], seed: int, most_steps: int) -> Film:
    """One episode of the newest policy in the world, and what the world model makes of its actions."""
    task = functools.partial(_film, env_config=env_config, seed=seed, most_steps=most_steps)
    return call_first(algorithm.learner_group, task)


@torch.no_grad()
def _film(learner: Learner, env_config: dict[str, Any], seed: int, most_steps: int) -> Film:
    policy, model, _ = learner_modules(learner, seed)
    torch.manual_seed(seed)
    env = MiniGrid(env_config)
    observation, _ = env.reset(seed=seed)
    real = [unflatten(observation)]
    imagined = [real[0]]
    state = _belief.first_belief(torch.as_tensor(real[0], device=learner.device)[None])
    for _ in range(most_steps):
        action = explore(policy, torch.as_tensor(observation, device=learner.device)[None], _LATE)
        observation, _, terminated, truncated, _ = env.step(int(action))
        step = model.step(state, action, None)
        state = step.state
        real.append(unflatten(observation))
        imagined.append(unflatten(step.observation.cpu().numpy())[0])
        if terminated or truncated:
            break
    return Film(np.stack(real), np.stack(imagined))


def write_strip(film: Film, file: Path, frames: int = 12) -> None:
    """A PNG: evenly spaced steps, the world above, the imagination below."""
    chosen = np.unique(np.linspace(0, len(film.real) - 1, frames).round().astype(int))
    rows = [
        np.concatenate([_padded(_picture(views[t])) for t in chosen], 1)
        for views in (film.real, film.imagined)
    ]
    Image.fromarray(np.concatenate(rows)).save(file)


def write_gif(film: Film, file: Path) -> None:
    """An animation: the world on the left, the imagination on the right."""
    frames = [
        Image.fromarray(np.concatenate([_padded(_picture(a)), _padded(_picture(b))], 1))
        for a, b in zip(film.real, film.imagined, strict=True)
    ]
    frames[0].save(file, save_all=True, append_images=frames[1:], duration=250, loop=0)


def _picture(view: np.ndarray) -> np.ndarray:
    """uint8 [84, 84, 3] of codes uint8 [7, 7]."""
    columns = [
        np.concatenate([_tile(int(view[x, y]), (x, y) == _AGENT) for y in range(VIEW)]) for x in range(VIEW)
    ]
    return np.concatenate(columns, 1)


@cache
def _tile(code: int, agent: bool) -> np.ndarray:
    if code == UNSEEN:
        return np.full((_TILE, _TILE, 3), 90, np.uint8)
    thing = WorldObj.decode(code // (COLOURS * STATES), code // STATES % COLOURS, code % STATES)
    return Grid.render_tile(thing, agent_dir=3 if agent else None, tile_size=_TILE).astype(np.uint8)


def _padded(picture: np.ndarray) -> np.ndarray:
    return np.pad(picture, ((0, _GAP), (0, _GAP), (0, 0)), constant_values=255)
