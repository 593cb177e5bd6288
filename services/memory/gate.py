"""What of an exchange may be worth remembering: rules that cost nothing, before a model is asked.

Plain tables, so that a language is mended by adding a line. Ordinary questions and small talk fire nothing.
"""

import re
from typing import Literal

from services.memory.clauses import statements

Signal = Literal["preference", "intent", "decision", "fact", "outcome", "reference"]

_I = (
    r"\b(?:i|we)(?:'m|'re|'ve|'ll| am| are| was| were| have)?(?: (?:\w+ly|also|still|just|do|always|never|"
    r"quite|"
    r"now|so|not|no longer|don't|"
    r"didn't|even|already|rather|often|sometimes|kind of|sort of|used to|too|have|been|almost)(?![\w']))*+"
)
_MINE = (
    r"\b(?:my|our) (?:\w+ )?(?:wife|husband|son|daughter|mother|father|mom|mum|dad|parents|sister|brother|"
    r"partner|"
    r"kids?|child|children|baby|girlfriend|boyfriend|fiancée?|grandmother|grandfather|dog|cat|pet|puppy|kitten|"
    r"boss|"
    r"job|company|employer|birthday|address|hometown|nationality|native language|mother tongue|hobby|hobbies|"
    r"flat|apartment|house|school|university|major|salary|budget|phone number|email|e-mail|wedding|anniversary|"
    r"doctor|blood type|shoe size|height|weight|car|bike|team|name|nickname|surname|pronouns|diet|star sign)"
)
_NOT_A_TASTE = (
    r"(?! (?:the (?:first|second|last) (?:draft|version|one|option)|it|that|this|these|those|you|your|them|him|"
    r"her|to (?:know|ask|see|hear|think|say|thank|add)|how|what|"
    r"the (?:idea|way|sound|fact|answer)|where|when|the (?:first|second|third|last|other|new) (?:draft|version|"
    r"one|option))\b)"
)

_ENGLISH: dict[Signal, tuple[str, ...]] = {
    "preference": (
        rf"{_I} (?:like|love|hate|dislike|prefer|enjoy|adore|detest|loathe|loved|liked|hated|"
        rf"enjoyed){_NOT_A_TASTE}\b",
        rf"{_I} (?:can't|cannot|can not) (?:stand|bear|eat|drink|tolerate)\b",
        rf"{_I} (?:a |an )?(?:big |huge |great )?(?:fan of|into|fond of|keen on|obsessed with|crazy about|"
        rf"tired of|"
        r"sick of|bored (?:of|with)|fed up with|afraid of|scared of|addicted to|interested in)\b",
        rf"{_I} (?:eat|drink|watch|listen to|wear|avoid|smoke)\b",
        rf"{_I} (?:(?:had|have) enough of|stopped|quit|given up|gave up|switched to|gone off)\b",
        r"\b(?:i would|i'd|we'd|we would) (?:much |always )?rather\b|\bnothing beats\b|\bi (?:can't|"
        r"could) live without\b",
        r"\bi (?:need|get) my \w+ (?:coffee|tea|sleep)\b|\bi (?:mind|miss|crave|fancy|value|appreciate) (?!it|"
        r"that|your)\w+",
        r"\bmy (?:all-time )?(?:favou?rite|preferred|taste)\b",
        r"\b(?:isn't|is not|not) (?:really )?my (?:thing|cup of tea|style|taste)\b",
    ),
    "intent": (
        rf"{_I} (?:want|wanna|plan|planning|intend|hope|hoping|aim|going|gonna|thinking of|thinking about|"
        r"considering|would like|looking forward) (?:to |on )?+"
        r"(?!know\b|ask\b|understand\b|see (?:how|if|what)|check\b|find out|hear\b|say\b|thank|confirm|"
        r"make sure|"
        r"be sure|how\b|what\b|you\b|a quick|bed\b|sleep\b|go now)\w+",
        r"\bi'd (?:like|love) to (?:learn|become|move|visit|travel|start|change|buy|build|study|stop)\b",
        rf"{_I} (?:looking for|saving (?:up )?for|training for|preparing for|learning)\b",
        r"\bmy (?:goal|plan|dream|aim|target|resolution|deadline)\b",
        r"\bchanged my mind\b",
    ),
    "decision": (
        r"\b(?:i|we)(?:'ve| have)? (?:\w+ly |now |just )?(?:decided|chosen|chose|settled on|opted|"
        r"resolved to)\b",
        r"\b(?:i|we)(?:'ll| will|'m going to|'re going to| am going to) (?:go with|take|pick|stick with|choose|"
        r"skip)\b",
        r"\b(?:i'm|we're|i am|let's) (?:going|go) with\b",
        r"\b(?:made up my mind|my (?:decision|choice) is|final decision)\b",
    ),
    "fact": (
        rf"{_MINE}(?:'s\b| (?:is|are|was|were|has|have|had|lives?|works?|got|called|just|died|passed|will|"
        rf"turned)\b)",
        r"\b(?:call me|i go by)(?! (?:back|later|when|if|at|a |an |on)) \w+",
        rf"{_I} (?:live|lived|living|reside|based|born|grew up|raised) (?:in|at|on|with|near|alone)\b",
        rf"{_I} (?:moved|relocated|moving|emigrated) (?:\w+ )?(?:to|from|in|here|house|out)\b",
        rf"{_I} from (?!the start|now|scratch|here)\w+",
        rf"{_I} (?:work|worked|working|employed) (?:at|for|as|in|from home|part|full|nights|remotely)\b",
        rf"{_I} (?:a|an) (?!bit|little|lot|fan|huge|big|quick|while|few|hurry|idea|question|problem|moment)"
        r"(?:\w+[ -]){0,3}(?:\w+(?:er|or|ist|ian|ant|ent|eer|man|woman)|nurse|chef|cook|vegan|diabetic|judge|"
        r"pilot|"
        r"architect|coach|parent|mother|father|twin|widow|clerk|monk|freelance|introvert|extrovert|"
        r"only child)\b",
        rf"{_I} (?:\d+ years old|\d+(?: now)?$|married|single|divorced|engaged|vegetarian|vegan|diabetic|"
        rf"pregnant|"
        r"allergic|retired|unemployed|left-handed|lactose|gluten|colou?r-?blind|asthmatic|deaf|celiac|"
        r"coeliac)\b",
        rf"{_I} (?:a |an |two |three |four |\d+ |one )(?:\w+ )?"
        r"(?:dogs?|cats?|kids?|child|children|sons?|daughters?|brothers?|sisters?|siblings?|degree|allergy|phd|"
        r"car)\b",
        rf"{_I} (?:got|get|getting) (?:a |an )?(?:\w+ )?(?:job|married|divorced|promoted|promotion|engaged|"
        rf"fired|"
        r"dog|cat|puppy|kitten|baby|offer)\b",
        rf"{_I} (?:laid off|promoted|fired|diagnosed|hired|adopted|graduated|retired|turned \d+|speak \w+|"
        rf"study|"
        r"studied|studying|majored|joined|start(?:ed)? (?:working|at|a new)|bought|own|allergic|named|"
        r"called)\b",
        r"\b(?:i|we) (?:usually|normally|typically|generally|always|never|often|rarely|hardly ever|tend to|"
        r"every \w+) "
        r"(?!know\b|understand\b|get (?:an?|this|the) \w*error|thought|heard|mind)\w+",
        rf"{_I} (?:play|teach|manage|lead|own|commute|suffer|volunteer|coach|belong|wear|share|sleep|wake up|"
        rf"practi[cs]e|"
        r"do (?:the |a |\w+ )?(?:\w+ )?(?:shifts?|yoga|sports?)) ?(?!the (?:file|code|command|function|text)|"
        r"this|that|it\b)",
        r"\bmy (?:\w+ )?(?:knees?|back|eyes?|heart|hips?|shoulder|stomach|blood pressure|hearing|sight|health|"
        r"sleep|"
        r"teeth|asthma|migraines?|insomnia|visa|contract|lease|marriage|commute|shift|garden|neighbou?rs?)\b",
        rf"{_I} (?:weigh|earn|drive) (?:an? |about |\d)",
    ),
    "outcome": (
        r"\b(?:it|that|this|your \w+|the \w+(?: \w+)?) (?:really |finally |didn't |did not |never |has |"
        r"hasn't )*"
        r"(?:worked|helped|solved|fixed (?:it|the)|failed again|turned out|went (?:really |very )?(?:well|"
        r"badly|"
        r"fine|"
        r"great|wrong|smoothly))\b",
        r"\b(?:i|we)(?:'ve| have)? (?:\w+ly |just |already )?(?:passed|failed|finished|completed|submitted|"
        r"booked|"
        r"signed|won|lost|achieved|cancelled|canceled|sold|got (?:the|in|into|my|it)|ran \w+ (?:marathon|k)|"
        r"fixed|solved)\b",
        r"\b(?:the|my|our) (?:\w+ )?(?:bug|problem|issue|leak|car|project|exam|deal|paper|thesis|operation|"
        r"surgery|"
        r"repair|application|offer|visa|error) (?:is|was|has been|got) (?:now |finally )?(?:fixed|solved|done|"
        r"gone|over|"
        r"finished|approved|rejected|resolved|closed|a success|accepted)\b",
        r"\b(?:was|were|been|got) (?:cancelled|canceled|approved|rejected|accepted|postponed|confirmed|"
        r"refunded)\b",
    ),
    "reference": (
        r"\b(?:as|like) i (?:said|mentioned|told you)\b",
        r"\b(?:i|we) (?:told|talked|spoke|discussed|agreed|mentioned)\b",
        r"\byou (?:recommended|suggested|told me|mentioned|said|advised|promised)\b",
        r"\b(?:last time|the other day|in our last|our previous|remember (?:the|that|when|my|how))\b",
    ),
}

_WO = r"(?:我|咱|俺)们?"
_ADVERBS = (
    r"(?:现在|目前|最近|一直|已经|其实|也|都|还|还是|更|最|很|非常|特别|超级?|挺|比较|有点|真的?|就|才|又|再|可|"
    r"总|从小|"
    r"从来|确实|本来|原来|以前|曾经|终于|最后|最终|刚刚?|今年|去年|上个?月|上周|昨天|今天|明年|后来|突然|越来越|"
    r"不再|不太|不怎么|不|没|没有|不是很|只|算|经常|偶尔|平时|每天|自己|个人|打小|这辈子|当然|大概|反正)*+"
)
_KIN = (
    r"我(?:的|们|家)?(?:家里?)?的?(?:老婆|妻子|太太|老公|丈夫|先生|儿子|女儿|孩子|爸爸?|妈妈?|父亲|母亲|爸妈|"
    r"父母|姐姐?|妹妹?|"
    r"哥哥?|弟弟?|爷爷|奶奶|外公|外婆|女朋友|男朋友|女友|男友|对象|未婚[夫妻]|猫|狗|宠物|老板|公司|单位|生日|"
    r"地址|老家|"
    r"家乡|国籍|母语|爱好|房子|学校|专业|工资|预算|手机号|电话|邮箱|婚礼|血型|身高|体重|鞋码|车|名字|外号|小名|"
    r"生肖|"
    r"星座|室友|同事|宝宝|猫咪|狗狗|工作|职业|年龄)"
)

_CHINESE: dict[Signal, tuple[str, ...]] = {
    "preference": (
        rf"(?:^|{_WO}{_ADVERBS}|^{_ADVERBS})(?:喜欢|讨厌|热爱|酷爱|偏爱|喜爱|厌恶|反感|受不了|迷上|爱上|看不惯|"
        rf"偏好)"
        r"(?!(?:你|它|这个回答|这样)(?:$|的?回答)|你给|你写|第)",
        rf"{_WO}{_ADVERBS}(?:爱|吃|喝|听|抽)(?!你|他|她|完|过|到|了|说|上)\S",
        rf"{_WO}对.{{1,12}}(?:感兴趣|没兴趣|没有兴趣|着迷|反感|无感|上瘾)",
        rf"{_WO}{_ADVERBS}(?:戒了|戒掉|戒|改喝|改吃|改用|吃腻|看腻|听腻|腻了|受够)",
        rf"{_WO}{_ADVERBS}(?:烦|嫌|宁愿|宁可|离不开|钟爱|馋)(?!你|这个回答)\S",
        rf"^(?:孩子们?|家人|全家|老婆|老公|爸妈|父母|我们?家){_ADVERBS}(?:喜欢|讨厌|爱吃|不吃|爱看|怕)\S",
        rf"{_WO}.{{0,6}}(?:听|看|吃|喝|忍|待)不下去",
        r"\b\w+ (?:bores?|annoys?|scares?|delights?|fascinates?) me\b",
        r"我(?:最|更|比较)?(?:喜欢|爱)的.{1,20}(?:是|有)",
        rf"{_WO}{_ADVERBS}(?:怕|害怕|忍不了|吃不了|喝不了|吃不惯|喝不惯|习惯)(?!你)\S",
    ),
    "intent": (
        rf"{_WO}{_ADVERBS}在?(?:想要?|打算|计划|准备|希望|考虑|正在学|在学|梦想)"
        r"(?!知道|问|请问|了解一?下|看看你|听听|你|确认|咨询|一下|请教|搞清楚|不通|不到|起来|说|象|睡|静静|让你|"
        r"请你|要你)\S",
        r"我的(?:目标|计划|梦想|愿望|打算|理想)",
        r"改(?:变)?(?:了)?主意|改变(?:了)?想法",
    ),
    "decision": (
        r"(?:我|我们|咱们)?(?:已经|最后|最终|终于|还是|刚|现在|商量后|一致|想好了)*(?:决定|下定决心|拿定主意|"
        r"选定|敲定|定下来)"
        r"(?!不了|不下来|权|性)",
        r"(?:我|我们)(?:还是|最后|最终|就)*(?:选|要|买|订)(?:了|第|这|那|定|择)",
        r"^就(?:选|要|买|订|用|这么|按|去)\S",
    ),
    "fact": (
        rf"{_WO}(?:的名字)?{_ADVERBS}(?:叫|姓|名叫|名字叫|名字是)(?!你|他|她|它|什么|外卖|车|醒|了|个|不)\S",
        r"^(?:请|你可以|以后|大家都|可以)*(?:叫|称呼)我",
        rf"{_WO}{_ADVERBS}(?:住|居住|定居|出生|生|长|来自|籍贯|户口)(?:在|于|大)?(?!气|产|病|意|活)\S",
        rf"{_WO}{_ADVERBS}.{{0,8}}(?:搬到|搬去|搬来|搬家|搬进|搬回|移民|搬出|迁到)",
        rf"{_WO}{_ADVERBS}在(?!考虑|想|找).{{1,15}}(?:工作|上班|任职|就职|上学|读书|读研|念书|实习|创业|留学|当|"
        rf"做)(?!做什么)",
        rf"{_WO}{_ADVERBS}是.{{0,3}}(?:一?[名个位]|做|搞|学|从事|素食|左撇子|独生|单身|属|色盲|色弱|过敏体质|"
        rf"\S{{1,8}}(?:人|师|生|"
        rf"员|座|型|族|者|长)$)",
        rf"{_WO}{_ADVERBS}(?:做|当|干)(?:了)?\S{{0,8}}(?:师|员|生意|行业|工作|医生|护士|老师|销售|设计|开发)",
        rf"{_WO}(?:今年)?{_ADVERBS}[\d零一二两三四五六七八九十百]+岁",
        rf"{_WO}{_ADVERBS}(?:有|养|生)(?:了)?(?:[\d一二两三四五六七八九十几]+|一)?[个只条位对].{{0,6}}"
        r"(?:孩子|儿子|女儿|猫|狗|弟弟|妹妹|哥哥|姐姐|双胞胎|宝宝|兔子|鱼|鹦鹉|仓鼠|金毛|柯基|橘猫)",
        r"对.{1,15}过敏|过敏体质|乳糖不耐",
        rf"{_WO}{_ADVERBS}(?:结婚|离婚|怀孕|退休|失业|辞职|离职|升职|毕业|订婚|分手|单身|入职|跳槽|转行|考上|"
        rf"当上|被裁|"
        r"得了|确诊|患|买了|吃素|会说|会讲|大学|学的是)",
        rf"{_KIN}\S{{0,8}}(?:是|叫|在|有|喜欢|快|刚|今年|住|生|岁|要|去世|病|不|属|姓|会|\d)",
        rf"{_WO}(?:一般|通常|平时|平常|习惯|总是|经常|每天|每周|每个月|从不|从来不|很少|基本){_ADVERBS}(?!说|问|"
        rf"用你)\S",
        r"我(?:的|家)?(?:膝盖|腰|背|眼睛|胃|心脏|血压|血糖|牙|嗓子|睡眠|视力|听力|身体|签证|房租|邻居|通勤)\S",
        rf"{_WO}{_ADVERBS}.{{0,8}}上?(?:夜班|早班|晚班|白班|倒班)",
        rf"{_WO}{_ADVERBS}(?:身高|体重)\S",
    ),
    "outcome": (
        r"(?:问题|bug|故障|毛病|病|事情|项目|面试|考试|手术|比赛|申请|签证|订单|合同|方案|方法|办法|约会|旅行|"
        r"航班|会议)"
        r".{0,8}(?:解决了|修好了|好了|通过了|过了|没过|成功了?|失败了?|黄了|取消了|搞定了|办下来了|被拒了?|签了|"
        r"很顺利|"
        r"顺利|管用|有效|有用|没用|延期了|结束了|完成了|泡汤了)",
        rf"{_WO}{_ADVERBS}.{{0,6}}(?:考过|通过了|拿到了?|完成了|做完了|交了|赢了|输了|签了|订好了|买好了|搞定了|"
        rf"成功了|"
        r"拿了|跑完了|没考上|没通过|学会了|减了|瘦了)",
        r"(?:你|您)(?:说的|教的|推荐的|给的|建议的).{1,12}(?:爱吃|喜欢|好评)|\byour \w+ (?:was|is) (?:a (?:hit|"
        r"success)|delicious|great|perfect)\b",
        r"(?:照|按)(?:你|您).{0,8}(?:做了|试了|去了|买了)|(?:你|您)(?:说的|教的|推荐的|给的|"
        r"建议的).{0,12}(?:管用|有效|有用|"
        r"不错|好吃|好看|好喝|没用|成功|很好|很棒|难吃|一般)",
    ),
    "reference": (
        r"(?:我|咱们|我们)(?:之前|上次|以前|刚才|昨天|那天|前几天)?(?:跟你|和你|不是|已经)*(?:说过|提过|提到过|"
        r"告诉过|聊过|讲过|商量过)",
        r"(?:你|您)(?:之前|上次|昨天|刚才|那天)(?:说|推荐|建议|提到|告诉|给|介绍|教)",
        r"(?:上次|上回|之前|那次|前几天|前两天)(?:你|我们?|咱们?|说|聊|提|推荐|的那)",
        r"^(?:还)?记得(?:我|那|上次|之前)",
    ),
}

# A promise or a deed of the assistant: what came of the exchange.
_OUTCOME_OF_ANSWER = (
    r"\b(?:i've|i have) (?:\w+ly |just |now )?(?:booked|ordered|scheduled|cancelled|canceled|reserved|sent|"
    r"submitted)\b",
    r"\byour (?:booking|order|reservation|appointment|ticket|request|refund) (?:is|has been|was) "
    r"(?:confirmed|placed|booked|cancelled|canceled|made|submitted|approved)\b",
    r"(?:已经?|已为您|已帮您|已帮你|已为你)(?:成功)?(?:预订|预定|订好|下单|取消|预约|提交|安排好|发送|买好)",
    r"(?:预订|预约|订单|申请)(?:已经?)?(?:成功|确认|提交成功|取消成功)",
)


# Whoever speaks of themselves tells something of themselves, unless they speak of the talk, or of a task.
_OF_ONESELF = re.compile(
    r"^(?:i|we)(?:'m|'re|'ve|'d| am| are| was| were|'ll)? (?:\S+ ){2,}\S+|^(?:my|our) (?:\S+ ){2,}\S+"
    r"|^(?:上周|上个月|昨天|前天|今天|今年|去年|以后|从现在起|从今天起|那天)?(?:我|咱|俺)\S{4,}"
    r"|^(?:the|my|our) (?:doctor|landlord|boss|dentist|teacher|therapist|family) \S+|^from now on\b"
    r"|^(?:医生|房东|老板|牙医|老师|家人|全家|上司|同事|领导)\S{3,}|^以后"
)
_OF_THE_TALK = re.compile(
    r"\b(?:think|know|knew|understand|understood|see|saw|mean|meant|guess|suppose|wonder|wondering|believe|"
    r"agree|ask|asked|"
    r"asking|say|said|try|tried|trying|need|want|would like|like|appreciate|hope|sure|sorry|confused|lost|"
    r"question|"
    r"problem|error|errors|issue|code|function|file|files|script|command|server|list|array|string|data|"
    r"database|"
    r"table|"
    r"number|numbers|program|page|link|text|answer|example|sentence|word|essay|email|message|document|version|"
    r"test|"
    r"tests|app|api|image|picture|wrote|write|writing|reading|using|use|used|get|got|getting|run|running|"
    r"cannot|"
    r"can't|"
    r"can|could|couldn't|should|must|may|might|will|won't|heard|find|found|look|looking|thought|tell|told|show|"
    r"wait|be|"
    r"back|here|done|ready|you|your|it|this|that|glad|happy to|afraid|noticed|agree|disagree|paste|pasted|"
    r"attached|compiled?|install|installed|query|click|clicked|below|above|roll|rolled|draft|odds|point|button|"
    r"returns?|remember|forgot|feel|x|y|n)\b"
    r"|我(?:再|先|也|就|还|真|是真的|现在|刚才|刚|一直)*(?:觉得|认为|以为|知道|不知道|不懂|没懂|看不懂|听不懂|"
    r"明白|不明白|理解|需要|想|要|"
    r"试|用|遇到|碰到|看|发现|查|搜|问|说|猜|同意|确定|不确定|好奇|很好奇|希望你|没听|没听说|听说|打不开|应该|"
    r"可以|能|不能|会|不会|该|"
    r"这边|这里|这个|刚看|写|收到|输入|运行|安装|点|按|选|不太|不是|没有?|有(?:一?个|些|点|几)|把(?:代码|文件|"
    r"数据|图片))"
    r"|代码|程序|日志|第[一二三四五六七八九十\d]+[点稿步版行段]|按钮|查询|骰子|概率|编译|报错|文件|函数|数据|"
    r"公式|链接|问题|答案|回答|意思|句|题|作文|论文|版本|接口|服务器|脚本|命令|图片|"
    r"表格|你|您"
)


def _compiled(table: dict[Signal, tuple[str, ...]]) -> dict[Signal, re.Pattern[str]]:
    return {signal: re.compile("|".join(f"(?:{pattern})" for pattern in table[signal])) for signal in table}


_TABLES = (_compiled(_ENGLISH), _compiled(_CHINESE))
_ANSWERED = re.compile("|".join(_OUTCOME_OF_ANSWER))
_LONGEST_ANSWER = 2000


def what_fires(user_text: str, answer_text: str) -> tuple[Signal, ...]:
    """What of an exchange may be worth remembering, each once, in the order of the table; empty for most.

    Everything about the user is looked for in what they said themselves, as an answer may repeat what was
    remembered before; of the answer only what came of the exchange counts.
    """
    fired: set[Signal] = set()
    for clause in statements(user_text):
        said = {signal for table in _TABLES for signal, rule in table.items() if rule.search(clause.folded)}
        if not said and _OF_ONESELF.search(clause.folded) and not _OF_THE_TALK.search(clause.folded):
            said.add("fact")
        fired |= said
    if _ANSWERED.search(answer_text[:_LONGEST_ANSWER].casefold().replace("’", "'")):
        fired.add("outcome")
    return tuple(signal for signal in _ENGLISH if signal in fired)
