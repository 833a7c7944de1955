"""The dynamics: diffusion, rectified flow, gaussian, nearest neighbours and cells, behind one protocol.

B rows, W window, F features per turn, L latent size. Latents are standardised by the caller.
"""

import math
from copy import copy

import torch
from sklearn.cluster import KMeans
from torch import Tensor, nn
from torch.nn import functional as F

from preplay.world_model._config import WorldModelConfig
from preplay.world_model._denoiser import Denoiser
from preplay.world_model._memory import MEMORIES

TRAIN_TIMESTEPS = 1000
STAGES = 64
"""Kinds of observations that categorical dynamics tell apart, at most."""
CELL_ROWS = 2
"""Rows of a usual cell, in ``neighbours``; fewer observations are told apart where there are fewer rows."""
FAR = 1e4
"""Where unused centres lie."""


class _Generative(nn.Module):
    """What diffusion and flow share: the denoiser, condition dropout and guidance."""

    def __init__(self, latent: int, features: int, config: WorldModelConfig):
        super().__init__()
        self.config, self.noise_dim = config, latent
        self.denoiser = Denoiser(latent, features, config)

    def loss(self, condition: Tensor, latent: Tensor, generator: torch.Generator) -> Tensor:
        """Mean squared error of the predicted velocity over ``noise_draws`` noisy copies of each row."""
        draws = self.config.noise_draws
        drop = torch.rand(len(latent), generator=generator) < self.config.condition_dropout
        encoded = self.denoiser.encode(condition, drop.to(latent.device)).repeat(draws, 1)
        latent = latent.repeat(draws, 1)
        noise = torch.randn(latent.shape, generator=generator).to(latent.device)
        uniform = torch.rand(len(latent), generator=generator).to(latent.device)
        noisy, level, velocity = self._corrupt(latent, noise, uniform)
        return F.mse_loss(self.denoiser(noisy, level, encoded), velocity)

    def step(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Next latent float32 [B, L] from condition float32 [B, W, F] and noise float32 [B, L]."""
        return self._sample(self.denoiser.encode(condition), noise)

    def unconditional(self, rows: int, noise: Tensor) -> Tensor:
        """Next latents drawn without a condition: what is left when the condition is ignored."""
        return self._sample(self.denoiser.no_condition.expand(rows, -1), noise)

    def _velocity(self, noisy: Tensor, level: float, encoded: Tensor) -> Tensor:
        levels = torch.full((1,), level, device=noisy.device)  # the same for all rows: embedded once
        velocity = self.denoiser(noisy, levels, encoded)
        if self.config.guidance == 1.0:
            return velocity
        nothing = self.denoiser.no_condition.expand(len(noisy), -1)
        plain = self.denoiser(noisy, levels, nothing)
        return plain + self.config.guidance * (velocity - plain)

    def _corrupt(self, latent: Tensor, noise: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Noisy latent, noise level in [0, 1] and the velocity to predict."""
        raise TypeError("use DiffusionDynamics or FlowDynamics")

    def _sample(self, encoded: Tensor, noise: Tensor) -> Tensor:
        raise TypeError("use DiffusionDynamics or FlowDynamics")


class DiffusionDynamics(_Generative):
    """v-prediction on a cosine schedule, sampled by DPM-Solver++(2M) from the noise alone (an ODE)."""

    def __init__(self, latent: int, features: int, config: WorldModelConfig):
        # Importing diffusers takes seconds, which nothing else here needs.
        from diffusers.schedulers.scheduling_ddpm import DDPMScheduler
        from diffusers.schedulers.scheduling_dpmsolver_multistep import DPMSolverMultistepScheduler

        super().__init__(latent, features, config)
        self._forward_process = DDPMScheduler(
            TRAIN_TIMESTEPS,
            beta_schedule="squaredcos_cap_v2",
            prediction_type="v_prediction",
            clip_sample=False,
        )
        self._solver = DPMSolverMultistepScheduler(
            TRAIN_TIMESTEPS,
            beta_schedule="squaredcos_cap_v2",
            prediction_type="v_prediction",
            algorithm_type="dpmsolver++",
            solver_order=2,
            # "leading" spacing, a default elsewhere, never reaches pure noise and loses the minority mode.
            timestep_spacing="trailing",
        )

    def _corrupt(self, latent: Tensor, noise: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        timestep = (uniform * TRAIN_TIMESTEPS).long().clamp_max(TRAIN_TIMESTEPS - 1)
        noisy = self._forward_process.add_noise(latent, noise, timestep)  # pyright: ignore[reportArgumentType]
        velocity = self._forward_process.get_velocity(latent, noise, timestep)  # pyright: ignore[reportArgumentType]
        return noisy, timestep / TRAIN_TIMESTEPS, velocity

    def _sample(self, encoded: Tensor, noise: Tensor) -> Tensor:
        solver = copy(
            self._solver
        )  # a solver keeps what it saw: one for each sampling, so that threads may share
        solver.set_timesteps(self.config.sampler_steps, device=noise.device)
        sample = noise
        for timestep in solver.timesteps:
            velocity = self._velocity(sample, float(timestep) / TRAIN_TIMESTEPS, encoded)
            sample = solver.step(velocity, timestep, sample).prev_sample  # pyright: ignore
        return sample


class FlowDynamics(_Generative):
    """Rectified flow on straight paths, sampled by Heun's method."""

    def _corrupt(self, latent: Tensor, noise: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        level = uniform[:, None]
        return (1 - level) * latent + level * noise, uniform, noise - latent

    def _sample(self, encoded: Tensor, noise: Tensor) -> Tensor:
        from diffusers.schedulers.scheduling_flow_match_heun_discrete import FlowMatchHeunDiscreteScheduler

        solver = FlowMatchHeunDiscreteScheduler(TRAIN_TIMESTEPS)
        solver.set_timesteps(self.config.sampler_steps, device=noise.device)
        sample = noise
        for timestep in solver.timesteps:
            velocity = self._velocity(sample, float(timestep) / TRAIN_TIMESTEPS, encoded)
            sample = solver.step(velocity, timestep, sample).prev_sample  # pyright: ignore
        return sample


class GaussianDynamics(nn.Module):
    """Baseline: mean and variance of each latent number, independent given the condition."""

    def __init__(self, latent: int, features: int, config: WorldModelConfig):
        super().__init__()
        self.config, self.noise_dim = config, latent
        self.memory = MEMORIES[config.memory](config.window, features)
        self.net = nn.Sequential(
            nn.Linear(self.memory.size, config.width),
            nn.SiLU(),
            nn.Linear(config.width, config.width),
            nn.SiLU(),
            nn.Linear(config.width, 2 * latent),
        )

    def loss(self, condition: Tensor, latent: Tensor, generator: torch.Generator) -> Tensor:
        """Mean negative log-likelihood per latent number, up to a constant."""
        mean, log_std = self._predict(condition)
        return (0.5 * ((latent - mean) / log_std.exp()).square() + log_std).mean()

    def step(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Next latent float32 [B, L]."""
        mean, log_std = self._predict(condition)
        return mean + log_std.exp() * noise

    def _predict(self, condition: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.net(self.memory(condition)).chunk(2, -1)
        return mean, log_std.clamp(-5, 2)


class NeighbourDynamics(nn.Module):
    """Baseline: what followed one of the most similar logged (state, action) pairs, drawn evenly."""

    keys: Tensor
    latents: Tensor

    def __init__(self, latent: int, features: int, config: WorldModelConfig, rows: int = 0):
        super().__init__()
        self.config, self.noise_dim = config, 1
        self.register_buffer("keys", torch.zeros(rows, config.window * features))
        self.register_buffer("latents", torch.zeros(rows, latent))

    def fit(self, condition: Tensor, latent: Tensor) -> None:
        """Keep training rows: condition float32 [R, W, F], latent float32 [R, L]."""
        self.keys, self.latents = condition.flatten(1).contiguous(), latent.contiguous()

    def step(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Next latent float32 [B, L]; noise float32 [B, 1] picks the neighbour."""
        count = min(self.config.neighbours, len(self.keys))
        nearest = _nearest(condition.flatten(1), self.keys, count)
        pick = (_uniform(noise[:, 0]) * count).long().clamp(0, count - 1)
        return self.latents[nearest.gather(1, pick[:, None])[:, 0]]


class CategoricalDynamics(nn.Module):
    """Baseline: what followed in the same cell (kind of observation × kind of action, k-means on phi), drawn evenly.

    A cell of fewer than ``neighbours`` rows leans on all rows with that kind of action.
    """

    stages: Tensor
    classes: Tensor
    latents: Tensor
    start: Tensor

    def __init__(self, latent: int, features: int, config: WorldModelConfig, rows: int = 0):
        super().__init__()
        self.config, self.noise_dim = config, 1
        phi, kinds = config.features.phi, config.features.action_clusters
        self.register_buffer("stages", torch.full((STAGES, phi), FAR))
        self.register_buffer("classes", torch.full((kinds, phi), FAR))
        self.register_buffer("latents", torch.zeros(rows, latent))
        self.register_buffer("start", torch.zeros(kinds * STAGES + 1, dtype=torch.int64))

    def fit(self, condition: Tensor, latent: Tensor) -> None:
        """Keep training rows by cell: condition float32 [R, W, F], latent float32 [R, L]."""
        room = len(latent) // (CELL_ROWS * self.config.neighbours * len(self.classes))
        observed, acted = self._newest(condition)
        for centres, rows, most in ((self.stages, observed, max(2, room)), (self.classes, acted, STAGES)):
            distinct = torch.unique(rows, dim=0).cpu().numpy()
            count = min(len(centres), len(distinct), most)
            found = KMeans(count, random_state=0).fit(distinct).cluster_centers_
            centres[:count] = torch.as_tensor(found, dtype=centres.dtype, device=centres.device)
        _, cell = self._place(condition)
        self.latents = latent[cell.argsort(stable=True)].contiguous()
        self.start[1:] = torch.bincount(cell, minlength=len(self.start) - 1).cumsum(0)

    def step(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Next latent float32 [B, L]; noise float32 [B, 1] picks the row."""
        kind, cell = self._place(condition)
        own = self.start[cell + 1] - self.start[cell] >= self.config.neighbours
        low = self.start[torch.where(own, cell, kind * STAGES)]
        size = self.start[torch.where(own, cell + 1, (kind + 1) * STAGES)] - low
        return self.latents[low + torch.minimum((_uniform(noise[:, 0]) * size).long(), size - 1)]

    def _newest(self, condition: Tensor) -> tuple[Tensor, Tensor]:
        """phi of the newest observation and action, float32 [B, P] each."""
        phi = self.config.features.phi
        size = self.config.features.components + phi
        return condition[:, -1, size - phi : size], condition[:, -1, 2 * size - phi : 2 * size]

    def _place(self, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Kind of action and cell of each row, int64 [B]."""
        observed, acted = self._newest(condition)
        kind = _nearest(acted, self.classes, 1)[:, 0]
        return kind, kind * STAGES + _nearest(observed, self.stages, 1)[:, 0]


def _uniform(noise: Tensor) -> Tensor:
    """Numbers in [0, 1] from standard normal ones."""
    return 0.5 * (1 + torch.erf(noise / math.sqrt(2)))


def _nearest(queries: Tensor, keys: Tensor, count: int, chunk: int = 1024) -> Tensor:
    """Indices of the nearest keys, int64 [B, count], in chunks to bound memory."""
    half_norm = 0.5 * keys.square().sum(-1)
    return torch.cat([(q @ keys.T - half_norm).topk(count, -1).indices for q in queries.split(chunk)])


Remembering = NeighbourDynamics | CategoricalDynamics
"""Dynamics that draw from stored rows and are not trained by gradients."""
DynamicsNet = DiffusionDynamics | FlowDynamics | GaussianDynamics | Remembering

DYNAMICS: dict[str, type[DynamicsNet]] = {
    "diffusion": DiffusionDynamics,
    "flow": FlowDynamics,
    "gaussian": GaussianDynamics,
    "knn": NeighbourDynamics,
    "categorical": CategoricalDynamics,
}
