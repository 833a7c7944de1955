"""Configuration of a world model and of its training."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class OptimiserConfig(BaseModel):
    """AdamW with linear warm-up, cosine decay, gradient clipping and an average of the weights (EMA).

    Args:
        steps: Gradient steps at most.
        batch: Logged turns per step.
        learning_rate: Peak rate, reached after ``warmup`` steps.
        weight_decay: Decoupled weight decay (Loshchilov & Hutter 2019).
        clip: Largest gradient norm.
        ema: Decay of the averaged weights per step; the average is what is kept.
        evaluate_every: Steps between evaluations on held-out sessions.
        patience: Evaluations without improvement after which training stops.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(default=1000, ge=1)
    batch: int = Field(default=256, ge=1)
    learning_rate: float = Field(default=2e-3, gt=0)
    warmup: int = Field(default=100, ge=0)
    weight_decay: float = Field(default=1e-2, ge=0)
    clip: float = Field(default=1.0, gt=0)
    ema: float = Field(default=0.998, ge=0, lt=1)
    evaluate_every: int = Field(default=100, ge=1)
    patience: int = Field(default=5, ge=1)


class FeatureConfig(BaseModel):
    """The projection phi and the principal components around it (design decision 1).

    Args:
        phi: Size of the bottleneck that is trained to predict what matters for decisions and outcomes.
        components: Principal components of each text in the condition. Held-out loss was 0.43 with 64, 0.42 with 32
            and 0.40 with 16 or 8 on 1,000 support-desk sessions: more of them over-fit.
        latent_components: Whitened principal components in the generated latent, beside phi.
        tail_weight: Weight of those components against phi in nearest-neighbour distances.
        action_clusters: Clusters of logged actions that phi learns to predict.
        hidden: Width of the bottleneck networks.
        dropout: Dropout inside the bottleneck while phi is trained.
        optimiser: Training of phi.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    phi: int = Field(default=16, ge=1)
    components: int = Field(default=16, ge=1)
    latent_components: int = Field(default=8, ge=1)
    tail_weight: float = Field(default=0.25, gt=0)
    action_clusters: int = Field(default=24, ge=2)
    hidden: int = Field(default=128, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    optimiser: OptimiserConfig = OptimiserConfig(steps=800, learning_rate=1e-3, ema=0.99)


class WorldModelConfig(BaseModel):
    """A world model: how the next observation is drawn, and what the model remembers.

    Args:
        dynamics: ``diffusion`` (v-prediction, Salimans & Ho 2022, sampled by DPM-Solver++(2M), Lu et al. 2022),
            ``flow`` (rectified flow, Liu et al. 2023, sampled by Heun), ``gaussian`` (mean and variance),
            ``knn`` or ``categorical`` (kind of observation × kind of action; trained in no time).
        memory: ``window`` (the last turns side by side), ``gru`` or ``transformer`` over them.
        window: Turns that the model sees; longer ones need a memory and pay where observations are aliased.
        width: Width of the networks.
        blocks: Residual blocks of the denoiser.
        condition_dropout: Share of training rows without a condition (classifier-free guidance).
        guidance: Weight of the condition when sampling. 1 samples the learned distribution; larger values make
            samples leave the data and bias values.
        sampler_steps: Denoising steps per imagined turn. Four or fewer under-disperse with diffusion.
        noise_draws: Noise draws per logged turn and training step.
        neighbours: Neighbours that ``knn`` draws from; rows from which on a cell of ``categorical`` is trusted
            without others of its kind of action.
        gamma: Discount of the return that phi learns to predict.
        horizon: Turns after which a session is cut; by default the longest logged session.
        structure: Whether the condition also says what tool calls are made of (see :mod:`preplay.actions`), where a
            fifth or more of the logged actions are tool calls.
        validation_fraction: Share of sessions (or tasks) held out for early stopping and fidelity.
        split_by: Whether whole sessions or whole tasks are held out.
        device: ``auto`` takes a GPU when there is one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dynamics: Literal["diffusion", "flow", "gaussian", "knn", "categorical"] = "diffusion"
    memory: Literal["window", "gru", "transformer"] = "window"
    window: int = Field(default=2, ge=1)
    width: int = Field(default=128, ge=8)
    blocks: int = Field(default=3, ge=1)
    condition_dropout: float = Field(default=0.1, ge=0, lt=1)
    guidance: float = Field(default=1.0, ge=0)
    sampler_steps: int = Field(default=8, ge=1)
    noise_draws: int = Field(default=2, ge=1)
    neighbours: int = Field(default=8, ge=1)
    gamma: float = Field(default=0.97, ge=0, le=1)
    horizon: int | None = Field(default=None, ge=1)
    structure: bool = True
    validation_fraction: float = Field(default=0.15, gt=0, lt=0.9)
    split_by: Literal["session", "task"] = "session"
    features: FeatureConfig = FeatureConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    outcome: OptimiserConfig = OptimiserConfig(steps=800, learning_rate=1e-3, ema=0.99)
    device: str = "auto"

    def resolved_device(self) -> str:
        """``cuda`` or ``cpu`` where ``auto`` was asked for."""
        import torch

        if self.device != "auto":
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"
