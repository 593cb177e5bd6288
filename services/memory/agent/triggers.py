"""Decides which memory jobs a turn causes: a cheap filter for exchanges that may be worth filing.

It passes anything about users, their people, plans, wishes and feelings, and corrections of it. It stops task
requests, questions about the world, greetings and talk about the answer. A wrong pass costs a share of one call;
what is stopped is lost to core memory.
"""

import re

from services.text.clauses import statements

REMEMBER = "remember_turn"
"""Task that files what is worth remembering of a turn."""

DECIDE_COMMAND = "decide_memory_command"
"""Task that decides whether a turn asks memory for something."""

_ABOUT_A_USER = re.compile(
    r"\b(?:i|i'm|i've|i'll|i'd|my|mine|myself|me|we|we're|we've|our|us)\b|我|咱|俺|本人|老婆|老公|媳妇|孩子们?|"
    r"儿子|女儿|爸妈|家人|全家"
)
_CORRECTS = re.compile(
    r"^(?:no|nope|sorry|wait|correction|actually|oops|scratch that|rather)\b|\b(?:i meant|i mean|i misspoke|my "
    r"mistake|"
    r"that's wrong|not \S+(?: \S+){0,2}[,;]? but|, not)\b|^(?:he|she|they)(?:'s| is| are| was|'re) (?!right|"
    r"wrong|good|great)\S"
    r"|说错|记错|搞错|弄错|打错|更正|纠正|不对|我是说|我的意思是|应该是|不是.{1,12}[,，]?(?:而?是)|口误"
)
_WISHES = re.compile(
    r"\b(?:from now on|going forward|in future|in the future|from here on|always|never|every time|stop \w+ing)\b|"
    r"\b(?:keep|make) your (?:answers?|repl)|\b(?:call|address) me\b|以后|今后|从现在|从今天|往后|每次|别再|"
    r"不要再|一律|永远"
)
_OF_MEMORY = re.compile(
    r"\b(?:remember|memori[sz]e|forget|keep in mind|note that|make a note|off the record|don't (?:save|store))\b"
    r"|记住|记下|记一下|别忘|忘掉|忘了|不要记|别记|不用记|删掉|保密"
)
_CAME_OF_IT = re.compile(
    r"\b(?:it|that|this|he|she|they|the \w+(?: \w+)?|your \w+) (?:\w+ly |didn't |never |has |hasn't |was |were |"
    r"is |are |got |been |now |did not )*"
    r"(?:work(?:ed|s)|helped|solved|fixed|turned out|went|passed|approved|rejected|accepted|cancelled|canceled|"
    r"postponed|confirmed|refunded|a (?:hit|success)|delicious|perfect|died|sold|done)\b|\bchanged my mind\b"
    r"|解决了|修好了|通过了|成功了|失败了|取消了|搞定了|办下来|拒了|签了|顺利|管用|有效|有用|没用|延期|完成了|"
    r"泡汤|好吃|好评|爱吃|去世|生了"
)
_ABOUT_THE_TALK = re.compile(
    r"\b(?:help me|tell me|give me|show me|let me|explain|remind me how|teach me|excuse me|thank|thanks)\b"
    r"|\b(?:i|we)(?:'m| am| have| would|'d|'ve)? (?:\w+ly |just |still |also |really |don't |do not |didn't |"
    r"can't |cannot |not )*"
    r"(?:wonder(?:ing)?|know|understand|see|guess|suppose|mean|agree|ask(?:ed|ing)?|confused|curious|sure|"
    r"need (?:help|you|to know|an?|some|the|it|more|another|\d+)|want (?:you|to (?:know|ask|see|understand|"
    r"learn more|make sure))|"
    r"like (?:you|to (?:know|ask|see))|have (?:a|another|one more|some|two) (?:quick )?questions?|tried|run|ran|"
    r"running|compile|paste|pasted|upload|attach|click|clicked|see an?|got (?:an?|this|the) \w*error|"
    r"get (?:an?|this|the) \w*error|wrote (?:this|a) (?:code|function|script|query|essay|paragraph)|notice|"
    r"noticed|back|here|ready|"
    r"appreciate it|got it|think (?:you|this|that|it)|hope (?:you|this|that|it)|heard|read that|found (?:this|"
    r"that|an?)|"
    r"looking (?:at|for (?:a|an|the|some) (?:word|way|function|formula|example|synonym)))\b"
    r"|\bmy (?:code|function|script|query|question|prompt|program|app|server|database|input|output|file|list|"
    r"array|string|test|"
    r"essay|paragraph|draft|sentence|document|text|message|point|previous|last)\b"
    r"|我(?:再|先|也|就|还|真的?|现在|刚才?|一直|有点|不太|没太|还是|大概)*(?:想(?:问|知道|请|了解|确认|听听|"
    r"看看你)|问(?:你|一下|个)|不?知道|没?看?不?懂|"
    r"不?明白|不?理解|需要(?:你|一[个份篇段张]|知道)|要(?:一[个份篇段张]|你|问)|试(?:了|过|着)|运行|安装|编译|"
    r"输入|点(?:了|击)|按(?:你|照你)|遇到|"
    r"有(?:个|一个|几个|点)?(?:问题|疑问|疑惑)|写(?:了|的|一)|看(?:到|了)|查(?:了|一)|搜|猜|同意|好奇|听说|"
    r"打不开|收到|发现|没听)"
    r"|帮我|给我(?!妈|爸|们|老|儿|女|的)|告诉我|教我|让我|请你?(?:解释|说明|介绍|列|写|翻)|我的?(?:代码|程序|"
    r"函数|脚本|文件|数据|问题是|公式|论文|作文|句子|日志)"
)
_OF_THE_ANSWER = re.compile(
    r"\b(?:i've|i have) (?:\w+ly |just |now )?(?:booked|ordered|scheduled|cancelled|canceled|reserved|sent|"
    r"submitted)\b"
    r"|\byour (?:booking|order|reservation|appointment|ticket|request|refund) (?:is|has been|was) \w+"
    r"|已(?:经|为您|帮您|帮你|为你)?(?:成功)?(?:预订|预定|订好|下单|取消|预约|提交|安排好|发送|买好)|(?:预订|"
    r"预约|订单|申请)(?:已经?)?(?:成功|确认)"
)
_TO_FORGET = re.compile(
    r"\b(?:forget|off the record|delete|erase|remove|drop(?:ped)?|between us|"
    r"don't (?:remember|save|store|keep|mention|record)|"
    r"do not (?:remember|save|store|keep|mention))\b|忘|不要[记提存]|别[记提存]|不用记|删|保密|不许记|抹掉"
)
_SHORTEST = 3
_LONGEST_ANSWER = 2000


def is_worth_filing(said: str, answer: str) -> bool:
    """Whether the memory agent should process an exchange.

    Facts about the user are searched for in their own words, because an answer may repeat earlier memories; of the
    answer only outcomes of the exchange count.
    """
    if _OF_THE_ANSWER.search(answer[:_LONGEST_ANSWER].casefold().replace("’", "'")):
        return True
    return any(_says_something(clause.folded) for clause in statements(said))


def may_ask_to_forget(said: str) -> bool:
    """Whether a message has words that ask to forget something; without them nothing is retracted."""
    return _TO_FORGET.search(said.casefold().replace("’", "'")) is not None


def _says_something(clause: str) -> bool:
    if any(pattern.search(clause) for pattern in (_CORRECTS, _WISHES, _OF_MEMORY, _CAME_OF_IT)):
        return True
    about = _ABOUT_A_USER.search(clause) is not None and len(clause) >= _SHORTEST
    return about and not _ABOUT_THE_TALK.search(clause)


def jobs_of_turn(said: str, answer: str) -> list[str]:
    """Return the names of the memory tasks that a completed turn causes; often none."""
    return [REMEMBER] if is_worth_filing(said, answer) else []
