"""What a context wants: weights of the reward heads, and the hint that goes with a kind of state."""

from collections.abc import Mapping
from dataclasses import dataclass

from preplay.critics import ActionEncoder, DecisionState, Scorer
from preplay.errors import PreplayError
from preplay.logs import ToolCall, render_action


@dataclass(frozen=True)
class Goals:
    """Weights of a critic's reward heads by context; unknown contexts take ``default``."""

    heads: tuple[str, ...]
    default: Mapping[str, float]
    contexts: Mapping[str, Mapping[str, float]]

    def __post_init__(self):
        for weights in (self.default, *self.contexts.values()):
            if unknown := sorted(set(weights) - set(self.heads)):
                raise PreplayError(
                    f"there is no reward head {unknown[0]!r}.", fix=f"Heads: {', '.join(self.heads)}."
                )

    def weights(self, context: str) -> tuple[float, ...]:
        """Weights in the order of the heads; a head that is not named weighs 0."""
        chosen = self.contexts.get(context, self.default)
        return tuple(float(chosen.get(head, 0.0)) for head in self.heads)


@dataclass(frozen=True)
class PromptChooser:
    """The reasoning level: chooses the system hint whose use the critic values most in this state.

    Prompt changes are logged as actions like any other (a tool call with the template's name), so that the same
    critic scores them.
    """

    scorer: Scorer
    encoder: ActionEncoder
    templates: Mapping[str, str]

    def choose(self, state: DecisionState) -> tuple[str, str]:
        """Name and text of the best template."""
        if not self.templates:
            raise PreplayError("there are no prompt templates to choose from.")
        names = list(self.templates)
        pools = self.encoder.encode([state], [[prompt_action(name) for name in names]])
        best = names[int(self.scorer.score(pools).mean.argmax())]
        return best, self.templates[best]


def prompt_action(template: str) -> str:
    """How the choice of a prompt template is written as an action."""
    return render_action("", [ToolCall("set_prompt", {"template": template})])
