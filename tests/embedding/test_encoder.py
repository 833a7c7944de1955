import numpy as np
import pytest

from preplay.embedding import EncoderConfig, language_warning, load_encoder
from preplay.embedding._dataset import length_sorted_blocks
from preplay.errors import PreplayError

from .conftest import sentences

LONG = " ".join(sentences(1, 700))


def test_unit_vectors(encoder):
    vectors = encoder.encode(["refund", "", LONG])
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_text_has_the_same_vector_in_every_batch(encoder):
    texts = [*sentences(40, 5), *sentences(20, 20), LONG, "", "refund"]
    together = encoder.encode(texts)
    reversed_order = encoder.encode(texts[::-1])[::-1]
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    assert (together == reversed_order).all()
    assert (together == alone).all()


def test_long_text_is_the_mean_of_its_chunks_by_tokens(encoder):
    tokenizer = encoder._model.tokenizer
    tokens = tokenizer(LONG, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
    size, step = 254, 254 - 32  # 256 less [CLS] and [SEP]; neighbours share 32
    starts = range(0, len(tokens) - 32, step)
    chunks = [tokens[s : s + size] for s in starts]
    assert len(chunks) == 5
    vectors = encoder._forward([[101, *chunk, 102] for chunk in chunks]).astype(float)
    mean = np.average(vectors, axis=0, weights=[len(chunk) for chunk in chunks])
    np.testing.assert_allclose(encoder.encode([LONG])[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_the_end_of_a_long_text_counts(encoder):
    first, second = encoder.encode([LONG + " I love it", LONG + " cancel my contract now"])
    assert 0.9 < first @ second < 0.9999


def test_similar_texts_are_near(encoder):
    refund, money, weather = encoder.encode(["I want a refund", "Give me my money back", "It rains in Rome"])
    assert refund @ money > refund @ weather + 0.3


def test_bfloat16_stays_close_to_float32(encoder):
    texts = sentences(16, 8)
    exact = load_encoder(EncoderConfig(dtype="float32"))
    low = load_encoder(EncoderConfig(dtype="bfloat16"))
    cosine = (exact.encode(texts) * low.encode(texts)).sum(axis=1)
    assert cosine.min() > 0.9995
    assert exact.fingerprint != low.fingerprint
    assert exact.fingerprint.weights_sha256 == low.fingerprint.weights_sha256


def test_fingerprint_does_not_depend_on_what_was_encoded(encoder):
    fresh = load_encoder(encoder.config)
    before = fresh.fingerprint
    fresh.encode([LONG, "a"])
    assert before == encoder.fingerprint
    assert before.dimension == 384
    assert before.max_tokens == 256


def test_prefix_and_window_are_part_of_the_fingerprint(encoder):
    prefixed = load_encoder(EncoderConfig(prefix="query: ", max_tokens=64))
    assert prefixed.fingerprint.max_tokens == 64
    assert "query: " in prefixed.fingerprint.pooling
    assert (
        prefixed.encode(["refund"]) == load_encoder(EncoderConfig(max_tokens=64)).encode(["query: refund"])
    ).all()


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(PreplayError, match="cannot load the encoder"):
        load_encoder(EncoderConfig(model=str(tmp_path / "nothing")))


@pytest.mark.parametrize(
    ("language", "languages", "warns"),
    [
        ("en", ("en",), False),
        ("zh-cn", ("en",), True),
        ("zh-cn", ("zh",), False),
        ("de", ("*",), False),
        (None, ("en",), False),
    ],
)
def test_language_warning(language, languages, warns):
    warning = language_warning(language, EncoderConfig(languages=languages))
    assert (warning is not None) == warns
    assert warning is None or ("zh-cn" in warning and "multilingual" in warning)


def test_blocks_hold_every_text_once_longest_first():
    texts = [*sentences(1100, 3), LONG * 30]
    blocks = length_sorted_blocks(texts)
    assert [len(block) for block in blocks] == [1, 512, 512, 76]
    assert sorted(text for block in blocks for text in block) == sorted(texts)
    assert blocks[0] == [LONG * 30]
