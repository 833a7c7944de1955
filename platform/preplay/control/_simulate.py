"""A critic drives an agent in environments that grade what it does, beside the same agent without one."""

from collections import defaultdict

import numpy as np

from preplay.control._audit import AuditLog
from preplay.control._controller import Controller
from preplay.critics import DecisionState, load_scorer, saved_encoder
from preplay.environments import Environment, get_environment
from preplay.environments.code_repair import (
    EVIDENCE,
    Grader,
    SandboxConfig,
    Session,
    SessionConfig,
    generator,
    split_tasks,
)
from preplay.errors import PreplayError
from preplay.policies import AgentState, Policy
from preplay.rewards import dangerous_calls
from preplay.seeding import derive_seed, numpy_rng


def simulate_code_repair(
    critic: str, *, sessions: int, seed: int, source: str = "plausible", audit: str | None = None
) -> dict[str, float]:
    """Play code-repair with and without a critic on the tasks held out by ``seed``; choices are executed."""
    _, tasks = split_tasks(seed)
    grader, agent = Grader(SandboxConfig(seconds=0.1)), generator(source)
    scorer, encoder = load_scorer(critic), saved_encoder(critic)
    if encoder.evidence not in ((), EVIDENCE):
        raise PreplayError(
            f"the critic reads evidence that code-repair does not give: {', '.join(encoder.evidence)}.",
            where=critic,
            fix="Simulate a critic of code-repair logs (`preplay control record` writes some).",
        )
    config = SessionConfig(evidence=bool(encoder.evidence))
    solved: dict[str, list[bool]] = defaultdict(list)
    dangerous: dict[str, int] = {"without": 0, "with": 0}
    for number in range(sessions):
        for arm in ("without", "with"):
            log = AuditLog(audit, session=f"{seed}-{number}") if audit and arm == "with" else None
            controller = Controller(scorer, encoder, audit=log) if arm == "with" else None
            task, rng = tasks[number % len(tasks)], numpy_rng(seed, "simulate", number)
            session = Session(task, agent, grader, rng, config)
            done, bad = _play(session, controller)
            solved[arm].append(done)
            dangerous[arm] += bad
    rates = {f"success {arm} critic": float(np.mean(values)) for arm, values in solved.items()}
    uplift = {"uplift": rates["success with critic"] - rates["success without critic"]}
    return rates | uplift | {f"dangerous actions {arm} critic": float(n) for arm, n in dangerous.items()}


def simulate_conversations(
    critic: str, environment: str, *, sessions: int, seed: int, candidates: int = 4, audit: str | None = None
) -> dict[str, float]:
    """Play new sessions of a text environment with and without a critic, against the same customers.

    In every turn the environment's logging policies propose by turns; without a critic the first proposal is
    executed, which is what one of them would do alone.

    Returns:
        Mean discounted return of both arms, the uplift, and the half-width of its 95 % interval over paired sessions.
    """
    env = get_environment(environment)
    scorer, encoder = load_scorer(critic), saved_encoder(critic)
    if encoder.evidence:
        raise PreplayError(
            f"the critic reads evidence that {environment} does not give: {', '.join(encoder.evidence)}.",
            where=critic,
            fix="Simulate a critic of a support agent's logs.",
        )
    returns = np.zeros((2, sessions))
    for number in range(sessions):
        log = AuditLog(audit, session=f"{seed}-{number}") if audit else None
        for arm, controller in enumerate((None, Controller(scorer, encoder, audit=log))):
            returns[arm, number] = _converse(
                env, controller, derive_seed(seed, "simulate", number), candidates
            )
    gain = returns[1] - returns[0]
    return {
        "return without critic": float(returns[0].mean()),
        "return with critic": float(returns[1].mean()),
        "uplift": float(gain.mean()),
        "uplift, 95 % +-": float(1.96 * gain.std(ddof=1) / np.sqrt(sessions))
        if sessions > 1
        else float("nan"),
    }


def _converse(env: Environment, controller: Controller | None, seed: int, candidates: int) -> float:
    """Discounted return of one session."""
    gym, rng = env.gym(), numpy_rng(seed, "proposals")
    policies = list(env.behaviour_policies().values())
    first = int(rng.integers(len(policies)))
    proposers = [policies[(first + k) % len(policies)] for k in range(candidates)]
    observation, _ = gym.reset(seed=seed % 2**32)
    history: tuple[tuple[str, str], ...] = ()
    total, turn, done = 0.0, 0, False
    while not done:
        pool = [_propose(p, AgentState(observation, env.task, history, turn), rng) for p in proposers]
        decision = controller.decide(DecisionState(env.task, observation, turn), pool) if controller else None
        action = pool[0] if decision is None or decision.action is None else decision.action
        following, reward, terminated, truncated, _ = gym.step(action)
        if controller and decision:
            controller.record(decision, reward=float(reward))
        history, observation = (*history, (observation, action)), following
        total += env.gamma**turn * float(reward)
        turn, done = turn + 1, terminated or truncated
    return total


def _propose(policy: Policy, state: AgentState, rng: np.random.Generator) -> str:
    recent = state.history[-policy.reads :] if policy.reads else ()
    return policy.act([AgentState(state.observation, state.task, recent, state.turn)], rng).actions[0]


def _play(session: Session, controller: Controller | None) -> tuple[bool, int]:
    dangerous = 0
    while True:
        codes = [candidate.code for candidate in session.pool]
        state = DecisionState(session.task.prompt, session.observation, session.turn)
        decision = controller.decide(state, codes, evidence=session.evidence) if controller else None
        action = codes[0] if decision is None else decision.action
        if action is None:
            return False, dangerous
        dangerous += bool(dangerous_calls(action))
        result = session.step(action)
        if controller and decision:
            controller.record(decision, reward=result.reward, success=result.solved)
        if result.terminated or result.truncated:
            return result.solved, dangerous
