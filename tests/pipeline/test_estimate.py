"""How estimates of the model are put together."""

import pytest

from preplay.pipeline._estimate import _blend
from preplay.pipeline._runs import at_most_bounds
from tests.pipeline.test_headline import estimate


def test_blend_by_hand():
    # Values .4 and .2: mean .3. Sampling (.04 + .08) / 2 = .06, half of the difference .1: sqrt(.06^2 + .1^2).
    blend = _blend(estimate("model.dm", 0.4, 0.04), estimate("model.wdr", 0.2, 0.08))
    assert blend.value == pytest.approx(0.3)
    assert blend.standard_error == pytest.approx(0.116619, abs=1e-6)
    assert blend.interval.width == pytest.approx(2 * 1.959964 * 0.116619, abs=1e-5)
    assert blend.estimator == "model.blend/1"


def test_blend_of_a_refused_correction_has_no_value():
    refused = estimate("model.wdr", 0.2).model_copy(update={"value": None, "verdict": "not identified"})
    blend = _blend(estimate("model.dm", 0.4), refused)
    assert (blend.value, blend.verdict) == (None, "not identified")


def test_a_model_alone_never_claims_an_estimate():
    lowered = at_most_bounds(estimate("model.dm", 0.4), "why")
    assert (lowered.verdict, lowered.reason, lowered.value) == ("bounds only", "why", 0.4)
