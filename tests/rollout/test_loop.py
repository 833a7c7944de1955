import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from preplay.errors import PreplayError
from preplay.policies import AgentState
from preplay.rollout import IMAGINED_SCHEMA, Block, RolloutConfig, rollout_block
from preplay.rollout._random import RowGenerator
from preplay.rollout._result import RolloutResult, summarise
from preplay.rollout._run import blocks_of

from .ring import PLACES, Ring, Walker, coin, encoder, gamble, go, starts


def imagine(ring, policy, initial, **config) -> pa.Table:
    settings = RolloutConfig(**{"rollouts": 1, "gamma": 0.5} | config)
    block = Block(0, 0, 0, len(initial) * settings.rollouts)
    return rollout_block(ring, policy, encoder(), initial, settings, block)


def result(turns: pa.Table, initial: int = 1, rollouts: int = 1, gamma: float = 0.5) -> RolloutResult:
    return summarise([turns], (1, initial, rollouts), gamma)


def test_first_reward_is_not_discounted():
    turns = imagine(Ring(), Walker(go), starts([0]))
    assert turns.schema == IMAGINED_SCHEMA
    assert turns["reward"].to_pylist() == [1, 2, 3]
    assert turns["observation"].to_pylist() == PLACES[:3]
    assert turns["step"].to_pylist() == turns["turn"].to_pylist() == [0, 1, 2]
    assert result(turns).value == 1 + 0.5 * 2 + 0.25 * 3


def test_a_session_that_ends_at_step_two_has_two_rows():
    turns = imagine(Ring(ends=(0, 0, 1, 0, 0), horizon=12), Walker(go), starts([0]))
    assert turns["reward"].to_pylist() == [1, 2]
    assert turns["terminated_prob"].to_pylist() == [0, 1]
    assert result(turns).value == 1 + 0.5 * 2


def test_rewards_are_weighted_by_survival():
    turns = imagine(Ring(ends=(0, 0.5, 0.5, 0.5, 0)), Walker(go), starts([0]))
    assert turns["survival"].to_pylist() == [1, 0.5, 0.25]
    assert result(turns).value == 1 + 0.5 * 0.5 * 2 + 0.25 * 0.25 * 3


def test_ending_does_not_depend_on_what_is_earned_after():
    """A certain end stops the reward: never negative rewards for staying dead, never positive ones."""
    short = imagine(Ring(ends=(0, 1, 0, 0, 0), horizon=12), Walker(go), starts([0]))
    assert result(short).returns.item() == 1


def test_survival_floor():
    ring = Ring(ends=(0, 0.9, 0.9, 0.9, 0.9), horizon=12)
    assert len(imagine(ring, Walker(go), starts([0]), survival_floor=0.05)) == 2  # 1, .1, then .01
    assert len(imagine(ring, Walker(go), starts([0]), survival_floor=0.005)) == 3


def test_horizon_of_the_session_and_of_the_rollout():
    initial = starts([0, 0], turn=1)
    turns = imagine(Ring(horizon=3), Walker(go), initial)
    assert turns["turn"].to_pylist() == [1, 1, 2, 2]
    assert turns["step"].to_pylist() == [0, 0, 1, 1]
    assert len(imagine(Ring(horizon=12), Walker(go), initial, horizon=5)) == 10
    assert len(imagine(Ring(horizon=12), Walker(go), initial)) == 22


def test_start_after_the_horizon_is_refused():
    with pytest.raises(PreplayError, match="at turn 3, but the model's sessions end after 3 turns"):
        imagine(Ring(), Walker(go), starts([0], turn=3))


def test_stops_when_the_rest_cannot_matter():
    """After step t at most 0.5**t * 5 * (1 + .5 + ...) <= 0.5**t * 10 is left: t = 4 gives 0.624 at horizon 12."""
    ring = Ring(horizon=12)
    full = imagine(ring, Walker(go), starts([0]))
    short = imagine(ring, Walker(go), starts([0]), return_tolerance=0.63, reward_bound=5)
    assert (len(full), len(short)) == (12, 4)
    assert 0 < result(full).value - result(short).value <= 0.63


def test_tolerance_needs_a_reward_bound():
    with pytest.raises(ValidationError, match="given together"):
        RolloutConfig(return_tolerance=0.1)


def test_dead_end_ends_the_session():
    turns = imagine(Ring(horizon=12), Walker(go), starts([0]), dead_ends=("place 3", "elsewhere"))
    assert turns["observation"].to_pylist() == PLACES[:3]


def test_policy_sees_task_turn_and_as_much_history_as_it_reads():
    policy = Walker(go, reads=2)
    imagine(Ring(), policy, starts([1], turn=1, history=[("place 0", "stay")]))
    assert policy.seen == [
        AgentState("place 1", "walk", (("place 0", "stay"),), 1),
        AgentState("place 2", "walk", (("place 0", "stay"), ("place 1", "next")), 2),
    ]


def test_history_is_cut_to_what_the_policy_reads():
    policy = Walker(go, reads=1)
    imagine(Ring(), policy, starts([1], turn=2, history=[("place 4", "next"), ("place 0", "gamble")]))
    assert policy.seen == [AgentState("place 1", "walk", (("place 0", "gamble"),), 2)]


def test_deterministic_policy_is_asked_once_per_distinct_state():
    policy = Walker(go)
    turns = imagine(Ring(), policy, starts([0, 1]), rollouts=50)
    assert len(turns) == 300
    assert len(policy.seen) == 2 * 3


def test_world_noise_moves_half_of_the_gamblers():
    turns = imagine(Ring(horizon=2), Walker(gamble), starts([0]), rollouts=4000)
    arrived = turns.filter(pa.compute.field("step") == 1)["observation"].to_numpy(zero_copy_only=False)
    assert abs((arrived == "place 1").mean() - 0.5) < 0.03


def places(turns: pa.Table, rollouts: int) -> np.ndarray:
    """Observation number by rollout and step, -1 where the session was over."""
    out = np.full((rollouts, 1 + max(turns["step"].to_pylist())), -1)
    numbers = [PLACES.index(text) for text in turns["observation"].to_pylist()]
    out[turns["rollout"].to_numpy(), turns["step"].to_numpy()] = numbers
    return out


@pytest.mark.parametrize(("rule", "deterministic"), [(gamble, True), (coin, False)])
def test_luck_is_shared_whoever_else_has_finished(rule, deterministic):
    """World noise and policy draws of a session stay the same when other sessions of the block end early."""
    policy = Walker(rule, deterministic=deterministic)
    free = places(imagine(Ring(horizon=8), policy, starts([0]), rollouts=200), 200)
    cut = places(imagine(Ring(horizon=8), policy, starts([0]), rollouts=200, dead_ends=("place 3",)), 200)
    assert (cut[:, -1] == -1).any()
    assert (cut[:, -1] >= 0).any()
    assert (cut == free)[cut >= 0].all()


def test_seed_and_block_change_the_luck():
    def path(seed: int, index: int) -> list[int]:
        config = RolloutConfig(rollouts=50, seed=seed)
        turns = rollout_block(Ring(), Walker(gamble), encoder(), starts([0]), config, Block(index, 0, 0, 50))
        return places(turns, 50).ravel().tolist()

    assert path(0, 0) == path(0, 0)
    assert path(0, 0) != path(1, 0)
    assert path(0, 0) != path(0, 1)


def test_row_generator_hands_out_the_rows_of_the_full_block():
    full = RowGenerator(7, "policy", 0, total=6, rows=np.arange(6))
    part = RowGenerator(7, "policy", 0, total=6, rows=np.array([1, 4]))
    assert (part.random((2, 3)) == full.random((6, 3))[[1, 4]]).all()
    assert (part.random(2) == full.random(6)[[1, 4]]).all()
    assert part.integers(10) == full.integers(10)


def test_wrong_number_of_actions_is_an_error():
    policy = Walker(go)
    policy.act = lambda states, rng: type(policy).act(policy, states[1:], rng)  # type: ignore[method-assign]
    with pytest.raises(PreplayError, match=r"policy 'walker': the policy gave 1 actions for 2 states"):
        imagine(Ring(), policy, starts([0, 1]))


def test_blocks_cover_every_session_of_every_member():
    assert list(blocks_of(members=2, sessions=5, size=3)) == [
        Block(0, 0, 0, 3),
        Block(1, 0, 3, 5),
        Block(2, 1, 0, 3),
        Block(3, 1, 3, 5),
    ]


def test_summary_by_hand():
    """Two members, one initial state, gamma 0.5: member 0 returns 1 + .5 * .5 * 2 = 1.5, member 1 returns 4."""
    rows = [
        {"member": 0, "step": 0, "reward": 1.0, "survival": 1.0, "snap_distance": 1.0},
        {"member": 0, "step": 1, "reward": 2.0, "survival": 0.5, "snap_distance": 2.0},
        {"member": 1, "step": 0, "reward": 4.0, "survival": 1.0, "snap_distance": 3.0},
    ]
    rest = {"initial": 0, "rollout": 0, "turn": 0, "observation": "o", "action": "a", "terminated_prob": 0.5}
    table = pa.Table.from_pylist([r | rest | {"support_distance": 0.0} for r in rows], schema=IMAGINED_SCHEMA)
    summary = summarise([table], (2, 1, 1), gamma=0.5)
    assert summary.member_values.tolist() == [1.5, 4.0]
    assert summary.initial_values.tolist() == [2.75]
    assert summary.drift.snap.tolist() == [2.0, 2.0]
    assert summary.drift.survival.tolist() == [1.0, 0.25]
