import pytest

from services.text.questions import states_something


@pytest.mark.parametrize(
    "text",
    [
        "I have a dog.",
        "我养了一只狗",
        "I'm a vet nurse. What can I cook?",
        "Translate this. My aunt lives in Oslo.",
        "我妈妈在医院工作呢。",
        "我还没吃饭呢",
        "我今天感冒了，但还是去上了瑜伽课。",
        "作为独生女，我常回家。",
        "我知道接下来该怎么走了。",
        "Change of plan, the wedding is at the library.",
        "I leave for Oslo on Friday, can you help me pack?",
        "I've finished the first sprint - what should come next?",
        "The kids start school on Monday, what should I pack?",
        "我打算下周去杭州玩三天，你能推荐一些景点吗？",
        "我对花生过敏，有什么零食推荐",
        "下周去杭州玩三天，有什么推荐？",
    ],
)
def test_a_sentence_that_states_something_is_enough(text: str) -> None:
    assert states_something(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is my dog called?",
        "Write a poem.",
        "Thanks!",
        "好的",
        "谢谢",
        "謝謝",
        "帮我写一首诗",
        "幫我寫一首詩",
        "告诉我我的狗叫什么。",
        "我妈妈呢",
        "…",
        "Hmm, so how do I set up alerts?",
        "In Python, how do I sort a list?",
        "帮我查一下，明天天气怎么样？",
        "你好，你叫什么名字？",
    ],
)
def test_questions_orders_and_courtesies_state_nothing(text: str) -> None:
    assert not states_something(text)
