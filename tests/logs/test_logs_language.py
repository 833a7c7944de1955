"""The dominant language of texts."""

import pytest

from preplay.logs import dominant_language

ENGLISH = "Hello, my order has not arrived yet and I would like to know where it is."
GERMAN = "Guten Tag, meine Bestellung ist noch nicht angekommen, könnten Sie bitte nachsehen?"
CHINESE = "你好，我的订单还没有到，请帮我查一下物流信息。"


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        ([ENGLISH] * 3 + [GERMAN], "en"),
        ([GERMAN] * 3 + [ENGLISH], "de"),
        ([CHINESE] * 2, "zh"),
        ([ENGLISH, GERMAN], None),
        (['{"tool_results":[{"content":"ok"}]}', "12345", ""], None),
        ([], None),
    ],
)
def test_dominant_language(texts, language):
    assert dominant_language(texts) == language


def test_json_blocks_do_not_vote():
    block = '{"tool_calls":[{"name":"bestellung_suchen","arguments":{"wo":"im Lager und noch nicht angekommen"}}]}'
    assert dominant_language([f"{ENGLISH}\n{block}"]) == "en"
