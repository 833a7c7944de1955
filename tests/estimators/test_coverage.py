"""Coverage in simulation, the small version of ``python -m benchmarks.coverage``.

400 logs per problem. A right 95 % interval holds in 380 ± 4.4 of them; 360 to 394 is four and a half standard
errors below and three above, so each assertion fails by chance in less than 1 of 500 runs.
"""

import pytest
from benchmarks.coverage import METHODS, Problem, abstract_problems, simulate

PROBLEMS = {p.name: p for p in abstract_problems()}
SUPPORTED = [p for p in PROBLEMS.values() if p.kind == "supported"]
UNSUPPORTED = [p for p in PROBLEMS.values() if p.kind == "no support"]


@pytest.mark.slow
@pytest.mark.parametrize("problem", SUPPORTED, ids=lambda p: p.name)
def test_intervals_hold_where_the_verdict_is_estimate(problem: Problem):
    for name, tally in simulate(problem, 1000, 400).items():
        assert tally.share("not identified") <= 0.05, name
        if tally.verdicts["estimate"] < 200:
            continue
        for method in METHODS:
            assert 0.90 <= tally.coverage(method) <= 0.985, (name, method)
        assert tally.coverage("bounds") >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("problem", UNSUPPORTED, ids=lambda p: p.name)
def test_no_support_is_not_identified(problem: Problem):
    for name, tally in simulate(problem, 300, 200).items():
        assert tally.share("not identified") >= 0.95, name
        assert tally.coverage("bounds") >= 0.95
