"""Chat messages and answers in Chinese, in English and in both at once, of 10 to 600 characters."""

CHINESE = (
    "早上好，今天有什么安排？",
    "帮我看看这份合同第三条是不是有问题。",
    "我下周三要去杭州出差，大概待四天，麻烦提醒我提前订好酒店，最好离西湖近一点，价格不要超过六百块一晚。",
    "孩子今年上小学二年级，数学成绩一直不太稳定，老师说他上课容易走神。我们试过请家教，也试过每天陪他做练习，效"
    "果都不明显。你有没有什么建议，能让他自己对数学产生兴趣，而不是被我们逼着学？",
    "番茄炒蛋的关键在于火候：先把鸡蛋炒到七分熟盛出来，再用中火把番茄炒出汁，最后把鸡蛋倒回去翻匀，加一点点糖提"
    "鲜，出锅前撒上葱花就可以了。",
    "我对花生过敏，以后推荐菜谱的时候请一定记住这一点。",
    "最近睡眠很差，半夜总是醒。",
    "谢谢你，我先按这个方案试一个星期，下周再来告诉你结果怎么样。",
    "请把会议纪要整理成三个部分：已经决定的事项、还需要讨论的问题、以及每个人的任务和截止日期。语气正式一些，不"
    "要超过五百字。",
    "这个周末会下雨吗？我想带狗去爬山。",
)

ENGLISH = (
    "Good morning! Anything new?",
    "Could you remind me what we decided about the kitchen tiles last week?",
    "My flight leaves on Friday at 6:45 in the morning, so I need a taxi no later than four o'clock. Please "
    "keep in mind that I travel with a large suitcase and a cello.",
    "I don't like that tone. Shorter, please, and without the exclamation marks.",
    "Sure, go ahead.",
    "I grew up in a small village near the coast, and my grandmother taught me to bake bread when I was seven. "
    "Her recipe had no quantities at all: flour until it feels right, water as warm as your hand, salt, and "
    "patience.",
    "Thanks, that was exactly what I needed. One more question: does the warranty cover accidental damage abroad?",
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
    "My daughter's Chinese name is 林晓雨, and she was born on 3 May 2018. 她最喜欢的动物是熊猫。Please "
    "remember this for the birthday invitations.",
    "推荐几部适合学英语的电影吧，不要太老的。I have already watched Paddington and The Martian, 都挺喜欢。",
    "Wi-Fi 又断了，第三次了。Any idea why?",
)

PARAGRAPHS = (*CHINESE, *ENGLISH, *MIXED)
