"""Several critics, trained apart, as one."""

from collections.abc import Sequence

from preplay.critics._critic import Critic
from preplay.errors import PreplayError


def join_critics(critics: Sequence[Critic]) -> Critic:
    """One critic whose members are those of all; settings beside the networks are the first one's.

    Widths may differ. What decides the meaning of inputs and scores may not.

    Raises:
        PreplayError: When algorithms, features, training statistics or encoders differ.
    """
    first = critics[0]
    for other in critics[1:]:
        same = (
            other.config.algorithm == first.config.algorithm
            and other.feature_names == first.feature_names
            and other.fingerprint == first.fingerprint
            and all((vars(other.scaler)[k] == v).all() for k, v in vars(first.scaler).items())
            and (other.reward_scale == first.reward_scale).all()
        )
        if not same:
            raise PreplayError(
                "these critics cannot be joined.", fix="Train them by one algorithm on the same decisions."
            )
    members = [member for critic in critics for member in critic.members]
    config = first.config.model_copy(update={"members": len(members)})
    return Critic(
        config, first.size, first.scaler, first.reward_scale, members, first.feature_names, first.fingerprint
    )
