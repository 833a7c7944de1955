"""Generated requests against the OpenAPI file: nothing undocumented comes back, and nothing breaks."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from schemathesis import GenerationMode

OPERATIONS = [
    "POST /v1/score",
    "POST /v1/decisions/{decision_id}/outcome",
    "POST /v1/evaluations",
    "GET /v1/evaluations",
    "GET /v1/evaluations/{evaluation_id}",
    "DELETE /v1/evaluations/{evaluation_id}",
    "GET /v1/evaluations/{evaluation_id}/events",
    "GET /v1/models",
    "GET /v1/datasets",
    "GET /v1/policies",
    "GET /v1/decisions",
    "POST /v1/models/refresh",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
]

NOTHING_TO_GET_WRONG = [("GET /healthz", GenerationMode.NEGATIVE), ("GET /readyz", GenerationMode.NEGATIVE)]


@pytest.fixture(scope="module")
def operations(plain):
    schema = schemathesis.openapi.from_url(f"{plain.url}/openapi.json")
    return {found.ok().label: found.ok() for found in schema.get_all_operations()}


def test_every_operation_is_tried(operations):
    assert sorted(operations) == sorted(OPERATIONS)


CASES = [
    (label, mode)
    for label in OPERATIONS
    for mode in GenerationMode
    if (label, mode) not in NOTHING_TO_GET_WRONG
]


@pytest.mark.parametrize(("label", "mode"), CASES)
def test_generated_requests(plain, operations, label, mode):
    """All of schemathesis' checks: statuses, shapes, content types and headers as documented, tokens enforced, ..."""
    check(plain, operations[label], mode, examples=6)


@pytest.mark.slow
@pytest.mark.parametrize(("label", "mode"), CASES)
def test_many_generated_requests(plain, operations, label, mode):
    check(plain, operations[label], mode, examples=200)


def check(plain, operation, mode, *, examples: int) -> None:
    headers = {"Authorization": f"Bearer {plain.tokens['admin']}"}

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        assume([] not in case.query.values())  # wrong as a value, but nothing of it would be sent
        case.call_and_validate(headers=headers)

    run()
