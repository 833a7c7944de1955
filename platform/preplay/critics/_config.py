"""How a critic is trained."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Algorithm = Literal["iql", "cql", "awr", "bc", "actor_critic"]


class CriticConfig(BaseModel):
    """Implicit Q-learning, conservative Q-learning, or an actor by (advantage-weighted) cloning.

    * ``iql`` (Kostrikov et al. 2021): V(s) is the tau-expectile of min(Q1, Q2)(s, a) over logged actions; Q(s, a)
      is regressed on r + gamma V(s') with the Huber loss; nothing is ever asked about actions outside the logs.
    * ``cql`` (Kumar et al. 2020) on candidate sets: Q(s, a) on r + gamma max over the next pool, plus alpha times
      (logsumexp over the pool - Q of the executed action).
    * ``awr`` (Peng et al. 2019): logits over the pool, cloned with weights exp(advantage / temperature), clipped, the
      advantage being IQL's Q - V; ``bc`` clones without weights.
    * ``actor_critic``: CQL's critic under the actor's own policy, Q(s, a) on r + gamma E_pi Q(s', a'), and an actor
      over the pool that maximises E_pi min(Q1, Q2) + temperature times its entropy (CQL's actor-critic, discrete).

    Args:
        gamma: Discount of one turn.
        tau: Expectile, 0.5 (mean) to 1 (maximum).
        alpha: Weight of CQL's penalty.
        temperature: AWR's, and the weight of the actor's entropy, in units of the reward's standard deviation.
        weight_ceiling: AWR's largest weight.
        huber: Where the Q loss turns from square to linear, in standard deviations of the reward.
        target_rate: Share of the online network that enters the target network at each step.
        budget_ends: A session cut by its own turn budget has no value afterwards (the share of turns that has passed
            is in the state). False: such decisions are left out of Q's targets.
        members: Networks in the ensemble, each on its own bootstrap of sessions.
        weights: Weight of each reward head when scores are combined; () takes the sum.
    """

    model_config = ConfigDict(frozen=True)

    def decay(self, decisions: int) -> float:
        """AdamW's weight decay for so many logged decisions.

        Strong by design: with dozens of tasks, a free network learns the tasks by heart. What is believed beforehand
        counts the less the more is logged: 10 for 500 decisions of code, 3 for 5,600 of a support agent.
        """
        return min(10.0, 15_000 / decisions) if self.weight_decay is None else self.weight_decay

    @property
    def has_actor(self) -> bool:
        """Whether candidates are scored by an actor's logits, not by Q."""
        return self.algorithm in ("awr", "bc", "actor_critic")

    algorithm: Algorithm = "iql"
    gamma: float = Field(default=0.95, ge=0, le=1)
    tau: float = Field(default=0.8, ge=0.5, lt=1)
    alpha: float = Field(default=0.5, ge=0)
    temperature: float = Field(default=0.5, gt=0)
    weight_ceiling: float = Field(default=20.0, gt=0)
    huber: float = Field(default=1.0, gt=0)
    target_rate: float = Field(default=0.02, gt=0, le=1)
    budget_ends: bool = True
    members: int = Field(default=1, ge=1)
    weights: tuple[float, ...] = ()
    width: int = Field(default=32, ge=1)
    steps: int = Field(default=400, ge=1)
    batch_size: int = Field(default=128, ge=1)
    learning_rate: float = Field(default=2e-3, gt=0)
    weight_decay: float | None = Field(default=None, ge=0)
    """AdamW's; None: see :meth:`decay`."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Share of the input features hidden from the network in each step of training."""
