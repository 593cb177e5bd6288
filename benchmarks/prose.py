"""Chat messages and answers in Chinese, in English and in both at once, of 10 to 600 characters."""

from random import Random

CHINESE = (
    "早上好，今天有什么安排？",
    "帮我看看这份合同第三条是不是有问题。",
    "我下周三要去杭州出差，大概待四天，麻烦提醒我提前订好酒店，最好离西湖近一点，价格不要超过六百块一晚。",
    "孩子今年上小学二年级，数学成绩一直不太稳定，老师说他上课容易走神。我们试过请家教，也试过每天陪他做练习，效"
    "果都不明显。你有没有什么建议，能让他自己对数学产生兴趣，而不是被我们逼着学？",
    "番茄炒蛋的关键在于火候：先把鸡蛋炒到七分熟盛出来，再用中火把番茄炒出汁，最后把鸡蛋倒回去翻匀，加一点点糖提"
    "鲜，出锅前撒上葱花就可以了。",
    "我对花生过敏，以后推荐菜谱的时候请一定记住这一点。",
    "根据您刚才的描述，问题很可能出在路由器的设置上。建议先重启设备，等两分钟以后再连接；如果还是不行，可以进入"
    "管理页面，检查一下无线信道是不是和邻居的冲突了。把信道从自动改成固定的某一个，往往就能解决晚上网速变慢的情"
    "况。要是依然没有改善，请把指示灯的颜色和闪烁方式告诉我，我们再一步一步往下查。",
    "最近睡眠很差，半夜总是醒。",
    "这本书讲的是一个南方小镇三代人的故事。祖父年轻时在码头扛货，父亲后来开了一间修表铺，到了女儿这一代，镇上的"
    "年轻人几乎都走光了。作者写得很克制，没有大起大落的情节，却把时间流逝的感觉写得非常动人，尤其是结尾那场雨，"
    "读完以后久久不能平静。",
    "谢谢你，我先按这个方案试一个星期，下周再来告诉你结果怎么样。",
    "请把会议纪要整理成三个部分：已经决定的事项、还需要讨论的问题、以及每个人的任务和截止日期。语气正式一些，不"
    "要超过五百字。",
    "我父亲今年七十二岁，有高血压，一直在吃药。上个月体检发现血糖也偏高，医生建议先控制饮食，三个月以后复查。他"
    "平时喜欢吃面食，早餐基本上都是馒头和稀饭，晚上还要吃一点水果。想请你帮忙列一份既照顾他的口味、又适合控制血"
    "糖的一周食谱，最好能注明每餐大概的分量，食材在普通菜市场就能买到。另外他牙口不太好，太硬的东西咬不动，也请"
    "考虑进去。",
    "这个周末会下雨吗？我想带狗去爬山。",
)

ENGLISH = (
    "Good morning! Anything new?",
    "Could you remind me what we decided about the kitchen tiles last week?",
    "My flight leaves on Friday at 6:45 in the morning, so I need a taxi no later than four o'clock. Please "
    "keep in mind that I travel with a large suitcase and a cello.",
    "The simplest way to keep basil alive indoors is to give it more light than you think it needs, to water "
    "it from below, and to pinch off the tips every week so that it grows bushy instead of tall. Most "
    "supermarket pots hold a dozen seedlings that compete with each other; divide them into three pots and "
    "they will last for months.",
    "I don't like that tone. Shorter, please, and without the exclamation marks.",
    "We have been running the reconciliation job every night since March. It usually finishes within twenty "
    "minutes, but on the first of each month it takes almost three hours because the partner uploads a "
    "cumulative file. Yesterday it collided with the backup window, both processes waited for the same lock, "
    "and the dashboard showed stale figures until noon. I would like to understand whether we should split the "
    "file, move the backup, or simply make the job incremental. What would you look at first, and which "
    "measurements would you want to have before deciding anything?",
    "Sure, go ahead.",
    "I grew up in a small village near the coast, and my grandmother taught me to bake bread when I was seven. "
    "Her recipe had no quantities at all: flour until it feels right, water as warm as your hand, salt, and "
    "patience.",
    "Thanks, that was exactly what I needed. One more question: does the warranty cover accidental damage abroad?",
    "Here is a summary of the three options. Renting is cheapest for the first two years but leaves you "
    "without any equity. Buying the flat on Mill Street costs about 1,850 a month, including maintenance, and "
    "is close to work. Building is the most expensive choice and would take eighteen months, although you "
    "would get the garden that you have always wanted. Considering what you told me about your job, I would "
    "rent for another year and save.",
    "What's the difference between a stock, a broth and a consommé?",
    "Her name is Margaret, she turns sixty on 14 December, she loves opera and hates surprises. Help me to "
    "plan something small for about ten people, preferably at home, with food that can be prepared the day "
    "before.",
    "Unfortunately the museum is closed on Mondays. The botanical garden is open until six, though, and the "
    "greenhouses are heated, which may be welcome in this weather.",
)

MIXED = (
    "帮我写一封 email 给 HR，说明我下个月想休 annual leave。",
    "这个 bug 我复现了：先打开 settings 页面，再点 back，app 就 crash 了。log 里只有一行 NullPointerException，"
    "没有更多信息。",
    "我们的 sprint 到周五结束，还剩两个 ticket 没做完：一个是 payment retry 的逻辑，另一个是导出 CSV 时中文乱码"
    "的问题。你觉得先做哪个？",
    "Our supplier in Shenzhen wrote: “货已经发出，预计周四到港，请注意查收。” Could you answer politely and "
    "ask for the tracking number and the packing list?",
    "面试的时候他们问了我 eventual consistency 和 strong consistency 的区别，我答得不太好。能不能用一个生活里的"
    "例子解释一下？最好再讲讲什么场景下该用哪一种，我下周还有第二轮 interview。",
    "How do I say “the deadline was moved forward” in Chinese? 是“提前”还是“推迟”？I always mix them up.",
    "好的，OK，就按 plan B 来。",
    "I am learning Chinese and I don't understand the difference between 了 and 过. For example: 我去了北京 "
    "and 我去过北京. Both seem to mean “I went to Beijing”, so when would a native speaker choose one over the "
    "other? Please give me four more examples with translations.",
    "我在 Berlin 租的公寓合同是英文的，其中有一条写着 “the tenant shall bear the cost of minor repairs up to "
    "100 EUR per case and 8 % of the annual rent in total”。这是不是说，每次一百欧以内的小修都要我自己出钱，一"
    "年加起来不超过年租金的百分之八？如果超过了，房东必须付吗？",
    "部署步骤如下：第一步，在 staging 环境执行 migration，确认没有 long-running query；第二步，把 traffic 切 "
    "10% 到新版本，观察 error rate 和 p99 latency 至少三十分钟；第三步，如果一切正常，再逐步提高到 50% 和 100%"
    "。一旦发现异常，立刻 rollback，不要在线上 debug。最后别忘了更新 runbook，并且在 team channel 里通知大家。",
    "My daughter's Chinese name is 林晓雨, and she was born on 3 May 2018. 她最喜欢的动物是熊猫。Please "
    "remember this for the birthday invitations.",
    "推荐几部适合学英语的电影吧，不要太老的。I have already watched Paddington and The Martian, 都挺喜欢。",
    "Let me put both answers next to each other. 第一种做法比较省钱，但是需要自己动手，大概要花两个周末；the "
    "second one costs roughly 400 more, yet a professional does everything in a day and you get a two-year "
    "guarantee. 如果你平时工作很忙，我会选第二种；如果你享受自己动手的过程，the first one is more fun, and you "
    "can always call somebody when you get stuck. 不管选哪一种，先把墙面的 moisture 测一下，太潮的话刷什么漆都"
    "会起皮。",
    "Wi-Fi 又断了，第三次了。Any idea why?",
)

PARAGRAPHS = (*CHINESE, *ENGLISH, *MIXED)

_DIFFERING = ((5, 1, 1), (1, 5, 1), (2, 2, 4))
_ALIKE = ((2, 2, 3), (3, 2, 2), (3, 2, 2))
"""Numbers of Chinese, English and mixed paragraphs in each prompt."""


def draw_prompts(random: Random, *, differing: bool) -> tuple[list[list[str]], list[list[str]]]:
    """Three prompts to learn from, of differing mixtures of languages or alike, and three fresh ones.

    No paragraph is in two prompts.
    """
    left = [random.sample(texts, len(texts)) for texts in (CHINESE, ENGLISH, MIXED)]
    seen = [
        [texts.pop() for texts, share in zip(left, shares, strict=True) for _ in range(share)]
        for shares in (_DIFFERING if differing else _ALIKE)
    ]
    fresh = [[text for texts in left for text in texts[number::3]] for number in range(3)]
    return seen, fresh
