"""World model of MiniGrid: learned consequences of actions around the agent, on a belief map that remembers.

Per step an ensemble sees the cell ahead, what is carried and the action, and predicts whether the agent moves, what
the cell ahead and the carried object become, success and termination. A second network guesses unknown cells as they
come into sight, nearest first, given what is known around them; a guess is written into the belief and stays.
Everything that acts at a distance (moving obstacles) is out of its reach: the gate on exact match then switches
rehearsal off.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from preplay_rllib import _belief
from preplay_rllib._belief import CENTRE, FRONT, HERE, SIDE, Belief
from preplay_rllib._minigrid import (
    CODES,
    COLOURS,
    FORWARD,
    OBJECTS,
    ONE_HOT,
    RIGHT,
    STATES,
    TOKENS,
    UNSEEN,
    VIEW,
    VIEW_SIZE,
)
from preplay_rllib._model import EnsembleMLP, EnsembleModule, Imagined, draw_members
from preplay_rllib._replay import Columns

_PARTS = (OBJECTS, COLOURS, STATES)
_ONE_HOT = torch.as_tensor(ONE_HOT)
_AHEAD, _CARRIED = (VIEW // 2, VIEW - 2), (VIEW // 2, VIEW - 1)
_PATCH = 5
_REVEALS = 8


class GridModule(EnsembleModule):
    """The ensemble. ``model_config``: members, hidden, memory, max_steps (the task's time limit),
    see_through_walls."""

    def setup(self) -> None:
        config = self.model_config
        self.members, self.max_steps = config["members"], config["max_steps"]
        self.see_through, self.memory = config["see_through_walls"], config["memory"]
        self.actions = int(self.action_space.n)
        sizes = [2 * TOKENS + self.actions, config["hidden"], config["hidden"], 2 * TOKENS + 12 + 3]
        self.local = EnsembleMLP(self.members, sizes)
        self.reveal = nn.Sequential(
            nn.Linear(_PATCH * _PATCH * TOKENS + VIEW * VIEW, config["hidden"]),
            nn.ReLU(),
            nn.Linear(config["hidden"], CODES),
        )

    def states(self, rows: Columns, device: torch.device) -> Belief:
        belief = Belief(*(torch.as_tensor(rows[k], device=device) for k in ("grid", "under", "step")))
        return belief if self.memory else self._forgotten(belief)

    def _forgotten(self, belief: Belief) -> Belief:
        """All that is not in sight is unknown again."""
        view = belief.view()
        shown = torch.where(_belief.visible(view, self.see_through), view, UNSEEN)
        return _belief.see(Belief(torch.zeros_like(belief.grid), belief.under, belief.step), shown)

    def observe(self, state: Belief) -> Tensor:
        view = state.view()
        shown = torch.where(_belief.visible(view, self.see_through), view, UNSEEN)
        return _one_hot(shown).reshape(len(shown), VIEW_SIZE)

    def reward(self, success: Tensor, steps: Tensor) -> Tensor:
        """MiniGrid's, by the steps that an episode has taken: nothing but success is worth anything."""
        return success * (1 - 0.9 * steps / self.max_steps)

    def step(self, state: Belief, action: Tensor, generator: torch.Generator | None) -> Imagined:
        rows, device = torch.arange(len(action), device=action.device), action.device
        out = self._local(state.grid, action)
        if generator is None:
            chosen = out.mean(0)
        else:
            chosen = out[draw_members(self.members, len(action), generator, device), rows]
        outcome, everyone, mean = (_Outcome.of(o, action) for o in (chosen, out, out.mean(0)))
        after = self._carry_out(state, action, outcome, generator)
        steps = after.step
        # one member's fantasy is enough to be exploited over a branch: a success needs all of them
        success = everyone.success.all(0) & outcome.terminated
        return Imagined(
            state=after,
            observation=self.observe(after),
            reward=self.reward(success, steps),
            terminated=outcome.terminated,
            success=success,
            truncated=steps >= self.max_steps,
            worth=success.float(),
            disagreement=everyone.differs(mean).float().mean(0),
        )

    def _local(self, grid: Tensor, action: Tensor) -> Tensor:
        """float32 [E, B, 2 tokens + 3]: cell ahead, carried, moved, success, terminated.

        Gates copy the colour (or any part) of what is ahead or carried, so that a door of a colour never seen opens.
        """
        ahead, carried = _one_hot(grid[:, FRONT]), _one_hot(grid[:, HERE])
        out = self.local(torch.cat([ahead, carried, F.one_hot(action, self.actions).float()], 1))
        logits, copies, flags = out.split([2 * TOKENS, 12, 3], -1)
        sources = torch.stack([ahead, carried])  # [2, B, tokens]
        parts = torch.repeat_interleave(torch.arange(3), torch.tensor(_PARTS)).to(out.device)
        gates = copies.unflatten(-1, (2, 2, 3))[..., parts]  # [E, B, target, source, tokens]
        copied = torch.einsum("ebtsk,sbk->ebtk", gates, sources).flatten(-2)
        return torch.cat([logits + copied, flags], -1)

    def _carry_out(
        self, state: Belief, action: Tensor, outcome: "_Outcome", generator: torch.Generator | None
    ) -> Belief:
        grid = state.grid.clone()
        still = (action > RIGHT) & ~outcome.moved
        grid[:, FRONT] = torch.where(still, outcome.ahead, grid[:, FRONT])
        grid[:, HERE] = outcome.carried
        belief = _belief.move(Belief(grid, state.under, state.step), action, outcome.moved)
        filled = self._fill(belief, generator)
        return filled if self.memory else self._forgotten(filled)

    def _fill(self, belief: Belief, generator: torch.Generator | None) -> Belief:
        """Guess what is unknown and in sight, until nothing is; what is guessed may open the sight further."""
        for _ in range(_REVEALS):
            view = belief.view()
            row, x, y = torch.nonzero(
                _belief.visible(view, self.see_through) & (view == UNSEEN), as_tuple=True
            )
            if not len(row):
                break
            guess = self._guess(belief.grid, row, x, y)
            if generator is None:
                code = guess.argmax(-1)
            else:
                code = torch.multinomial(torch.softmax(guess, -1), 1, generator=generator).squeeze(1)
            belief.grid[row, _cell(x, y)] = code.to(torch.uint8)
        return belief

    def _guess(self, grid: Tensor, row: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """float32 [N, codes] of the cells (x, y) of the field of view, from the patch around each."""
        half = _PATCH // 2
        padded = F.pad(grid.view(-1, SIDE, SIDE), (half, half, half, half))
        offsets = torch.arange(_PATCH, device=grid.device)
        xs = (x + CENTRE - VIEW // 2)[:, None, None] + offsets[None, :, None]
        ys = (y + CENTRE - VIEW + 1)[:, None, None] + offsets[None, None, :]
        patch = _one_hot(padded[row[:, None, None], xs, ys]).flatten(1)
        guess = self.reveal(torch.cat([patch, F.one_hot(x * VIEW + y, VIEW * VIEW).float()], 1))
        return guess.masked_fill(torch.arange(CODES, device=grid.device) == UNSEEN, -1e9)

    def ensemble_loss(self, batch: dict[str, Tensor]) -> Tensor:
        action, view, weight = batch["action"], batch["view"], batch["bootstrap"].float().T  # [E, B]
        out = self._local(batch["grid"], action)
        ahead, carried, flags = out.split([TOKENS, TOKENS, 3], -1)
        seen_ahead = (action > RIGHT) & ~batch["moved"]
        loss = _factor_loss(ahead, view[:, *_AHEAD]) * seen_ahead + _factor_loss(carried, view[:, *_CARRIED])
        for flag, label in zip(flags.unbind(-1), ("moved", "success", "terminated"), strict=True):
            target = batch[label].float().expand_as(flag)
            loss = loss + F.binary_cross_entropy_with_logits(flag, target, reduction="none")
        return (loss * weight).mean() + self._reveal_loss(batch)

    def _reveal_loss(self, batch: dict[str, Tensor]) -> Tensor:
        """One cell per row that the step brought to light, its new neighbours shown or not."""
        state = Belief(batch["grid"], batch["under"], batch["step"])
        moved = _belief.move(state, batch["action"], batch["moved"])
        view, known = batch["view"], moved.view()
        new = (view != UNSEEN) & (known == UNSEEN)
        row = torch.nonzero(new.flatten(1).any(1)).squeeze(1)
        if not len(row):
            return moved.grid.new_zeros((), dtype=torch.float32)
        cell = torch.multinomial(new[row].flatten(1).float(), 1).squeeze(1)
        x, y = cell // VIEW, cell % VIEW
        shown = new & (
            torch.rand_like(new, dtype=torch.float32) < torch.rand(len(new), 1, 1, device=new.device)
        )
        shown[row, x, y] = False
        grid = _belief.see(moved, torch.where(shown, view, UNSEEN)).grid
        return F.cross_entropy(self._guess(grid, row, x, y), view[row, x, y].long())

    @torch.no_grad()
    def error(self, rows: Columns, device: torch.device) -> dict[str, float]:
        """``exact``: share of rows whose next view, success and termination are all predicted exactly."""
        action, view = (torch.as_tensor(rows[k], device=device) for k in ("action", "view"))
        step = self.step(self.states(rows, device), action, None)
        same = (step.observation == _one_hot(view).reshape(len(view), VIEW_SIZE)).all(1)
        for name, predicted in (("terminated", step.terminated), ("success", step.success)):
            same &= predicted == torch.as_tensor(rows[name], device=device)
        return {"exact": same.float().mean().item()}


@dataclass(frozen=True)
class _Outcome:
    """Discrete prediction of ``_local``: ahead and carried uint8 [..., B]; moved, success, terminated bool."""

    ahead: Tensor
    carried: Tensor
    moved: Tensor
    success: Tensor
    terminated: Tensor

    @classmethod
    def of(cls, out: Tensor, action: Tensor) -> "_Outcome":
        ahead, carried, flags = out.split([TOKENS, TOKENS, 3], -1)
        moved, success, terminated = (flags > 0).unbind(-1)
        return cls(_code(ahead), _code(carried), moved & (action == FORWARD), success, terminated)

    def differs(self, other: "_Outcome") -> Tensor:
        return (
            (self.carried != other.carried)
            | (self.moved != other.moved)
            | (self.terminated != other.terminated)
            | (self.success != other.success)
        )


def _one_hot(codes: Tensor) -> Tensor:
    return _ONE_HOT.to(codes.device)[codes.long()]


def _code(logits: Tensor) -> Tensor:
    """uint8 code of float32 [..., tokens]."""
    kind, colour, state = (part.argmax(-1) for part in logits.split(_PARTS, -1))
    return (kind * COLOURS * STATES + colour * STATES + state).to(torch.uint8)


def _cell(x: Tensor, y: Tensor) -> Tensor:
    """Index into the grid of a cell of the field of view."""
    return (x + CENTRE - VIEW // 2) * SIDE + y + CENTRE - VIEW + 1


def _factor_loss(logits: Tensor, code: Tensor) -> Tensor:
    """float32 [E, B] cross-entropy of the three parts of codes uint8 [B]."""
    code = code.long()
    targets = (code // (COLOURS * STATES), code // STATES % COLOURS, code % STATES)
    members = len(logits)
    return sum(
        F.cross_entropy(part.flatten(0, 1), target.repeat(members), reduction="none").unflatten(
            0, (members, -1)
        )
        for part, target in zip(logits.split(_PARTS, -1), targets, strict=True)
    )  # type: ignore[return-value]
