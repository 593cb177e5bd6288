"""How far an embedding can be trusted with a language: measured once, with sentences of our own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.text.language import Language

Probe = tuple[str, str, str]
"""A sentence, a paraphrase, and one that shares words with the first but not its meaning."""

PROBES: dict[Language, tuple[Probe, ...]] = {
    "en": (
        ("I can't stand coffee.", "Espresso is not for me at all.", "I can't stand in the coffee queue today."),
        (
            "My sister works at a hospital.",
            "She nurses patients, my sibling.",
            "My sister waited at the work gate.",
        ),
        (
            "We moved to Lisbon last year.",
            "Portugal has been our home since then.",
            "We moved the sofa last year.",
        ),
        ("I'm allergic to peanuts.", "Nuts make me ill.", "I'm addicted to peanut cartoons."),
        ("My dog died in spring.", "We lost our pet a few months ago.", "My dog loves the spring sun."),
        ("I run ten kilometres every morning.", "Jogging is how my day begins.", "I run a shop every morning."),
        ("He got a new job as a teacher.", "A school has hired him.", "He got a new jacket from his teacher."),
        ("I prefer trains to planes.", "Flying is not how I like to travel.", "I prefer plain bread on trains."),
        ("Our daughter was born in May.", "We had a baby girl this spring.", "Our daughter may be bored."),
        ("I'm saving money for a house.", "I put cash aside to buy a home.", "I'm saving a seat in the house."),
        ("She plays the violin.", "Her instrument has four strings and a bow.", "She plays cards in the evening."),
        ("I don't eat meat.", "I've been a vegetarian for years.", "I don't eat before we meet."),
        ("My boss is unfair to me.", "I get treated badly by the manager.", "My boss has fair hair."),
        ("He broke his leg skiing.", "An accident on the slopes injured him.", "He broke the record in skiing."),
        ("I'm learning Spanish.", "I'm taking a language course for Madrid.", "I'm leaving the Spanish bar."),
        ("We're getting married in June.", "Our wedding is this summer.", "We're getting milk in June."),
        ("I can't sleep at night.", "Insomnia is troubling me.", "I can't see the sign at night."),
        ("My favourite films are scary.", "I love watching horror.", "My favourite film shop is closed."),
        ("I'm afraid of dogs.", "Big barking animals frighten me.", "I'm afraid the dogs are sold out."),
        ("Grandpa grows tomatoes.", "The old man keeps a vegetable garden.", "Grandpa throws tomatoes away."),
    ),
    "zh": (
        ("我受不了咖啡的味道。", "拿铁和美式我都不碰。", "我在咖啡店受不了排队。"),
        ("我姐姐在医院上班。", "她是护士，是家里的老大。", "我姐姐在上班的路上堵车。"),
        ("我们去年搬到了成都。", "全家现在定居四川。", "我们去年搬了一张沙发。"),
        ("我对花生过敏。", "吃坚果会让我身上起疹子。", "我对花生的价格很清楚。"),
        ("我家的狗春天去世了。", "几个月前宠物离开了我们。", "我家的狗喜欢春天的太阳。"),
        ("我每天早上跑十公里。", "晨练是我多年的习惯。", "我每天早上跑去开店。"),
        ("他找到了当老师的新工作。", "有学校聘用了他教书。", "他从老师那里找到了新书包。"),
        ("比起飞机我更喜欢火车。", "出远门我一般选高铁，不爱坐航班。", "比起飞机模型我更喜欢积木。"),
        ("我们的女儿五月出生。", "今年家里添了个千金宝宝。", "我们的女儿五月考试。"),
        ("我在存钱买房。", "为了有个自己的家，我平时很节省。", "我在房间里存放旧书。"),
        ("她会拉小提琴。", "弦乐是她从小学的特长。", "她会拉着行李箱走。"),
        ("我不吃肉。", "这些年一直是素食主义者。", "我不吃早饭就出门。"),
        ("老板对我不公平。", "上司总是针对我，让人委屈。", "老板对我买的公文包很满意。"),
        ("他滑雪摔断了腿。", "冬季运动时受伤骨折。", "他滑雪打破了纪录。"),
        ("我在学西班牙语。", "为了去马德里，最近报了外语课。", "我在西班牙餐厅吃饭。"),
        ("我们六月结婚。", "婚礼定在今年夏天。", "我们六月交房租。"),
        ("我晚上睡不着。", "最近总是失眠。", "我晚上看不清路牌。"),
        ("我最爱看吓人的电影。", "恐怖片是心头好。", "我最爱去的电影院关门了。"),
        ("我怕狗。", "看到大型犬就会紧张想躲开。", "我怕狗粮不够。"),
        ("爷爷种西红柿。", "老人家有一片菜园子。", "爷爷把西红柿扔掉了。"),
    ),
}

Vectors = Sequence[Sequence[float]] | NDArray[np.float32] | NDArray[np.float64]

# So much reciprocal rank comes from a name or a word in common; only what goes beyond it is understanding.
_BY_WORDS_ALONE = 0.2
_UNDERSTOOD = 0.75
_SENSELESS = 0.05
# A cosine counts as relevance if at most one in this many unrelated pairs reaches it.
_CHANCE = 0.01
# Even an embedding that understands nothing finds words that are written a little differently.
_LEAST = 0.1


@dataclass(frozen=True, slots=True)
class EmbeddingQuality:
    """Result of the probe for one language.

    Attributes:
        quality: How far it understands the language, 0 to 1.
        cosine_floor: From which on two texts are about the same.
    """

    quality: float
    cosine_floor: float


def probe_texts() -> list[str]:
    """The texts whose vectors `measured` takes, in this order."""
    return [text for language in sorted(PROBES) for probe in PROBES[language] for text in probe]


def measured(vectors: Vectors) -> dict[Language, EmbeddingQuality]:
    """Say what an embedding is good for by language, from the vectors of `probe_texts`.

    For each sentence its paraphrase is sought among all paraphrases and misleading sentences of the
    language. A constant or otherwise senseless embedding has quality 0.

    Raises:
        ValueError: The vectors are not one for each text, or are not finite.
    """
    table = np.asarray(vectors, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(probe_texts()) or not np.isfinite(table).all():  # noqa: PLR2004
        raise ValueError("An embedding has to give one finite vector for each text.")
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    table = table / np.where(lengths > 0, lengths, 1.0)
    found: dict[Language, EmbeddingQuality] = {}
    start = 0
    for language in sorted(PROBES):
        end = start + 3 * len(PROBES[language])
        found[language] = _of_language(table[start:end])
        start = end
    return found


def _of_language(table: NDArray[np.float64]) -> EmbeddingQuality:
    said, same, other = table[0::3], table[1::3], table[2::3]
    similar = said @ np.concatenate([same, other]).T
    own = np.diagonal(similar)
    # Of equal ones the paraphrase counts as the last: a model that cannot tell gets no credit.
    ranks = (similar >= own[:, np.newaxis]).sum(axis=1)
    reciprocal = float((1 / ranks).mean())
    unrelated = (said @ said.T)[~np.eye(len(said), dtype=bool)]
    quality = (reciprocal - _BY_WORDS_ALONE) / (_UNDERSTOOD - _BY_WORDS_ALONE)
    return EmbeddingQuality(
        quality=min(1.0, max(_LEAST if reciprocal > _SENSELESS else 0.0, quality)),
        cosine_floor=float(np.quantile(unrelated, 1 - _CHANCE)),
    )
