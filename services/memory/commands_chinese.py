"""Which Chinese clauses are memory commands. The text is simplified."""

import re

from services.memory.command import Clause, Reading
from state.memory import MemoryChangeKind

MAY_COMMAND = re.compile(
    r"忘|记|删|抹|清除|清掉|擦|说错|写错|打错|搞错|弄错|讲错|口误|更正|纠正|不是|不对|应该是|指的是|我是说|以后|"
    r"今后|往后|从现在|"
    r"从今|从此|总是|每次|一律|永远|始终|别|不要|不用|不必|私下|当我没说|留底|存|录|备注|off the record|之后|"
    r"一直|都要|下次|改成|"
    r"错了|有误|保密|备忘|清空|清理|抹|划掉|不算数|不作数|撤回|收回|不过敏|不再|了[,，]|掉|移除|销毁|当.{0,8}没|每回|每当|默认|凡是|只要|再|进你|不[叫姓在]"
)

LEAD = re.compile(
    r"^[\s\W]*(?:(?:那个?|对了|算了|哦|噢|啊|哎呀?|诶|欸|嗯+|呃|好吧?|好的|行|那就|那么|其实|说实话|另外|还有|"
    r"顺便(?:说一?句?)?|等等|等一下|"
    r"不好意思|抱歉|对不起|sorry|ok|谢谢|总之|所以|但是?|不过|而且|最后|首先|先|现在|亲|小助手|助手|你好|您好|"
    r"喂|嘿|话说|要不|干脆|还是)"
    r"[\s,，、]*)+",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:(?:(?:请|拜托|麻烦|劳烦|求|烦请|希望|想让|想请|要|需要|我(?:想|希望|要|需要)(?:请|让)?|能不能|"
    r"可不可以|可以|能|能否|可否|是否可以|"
    r"不如|最好|务必|一定要|可千万|千万|可得|可要|可(?=别|不)|必须|应该|得|直接|就|帮忙|帮我|给我|替我|都|全都|全部|彻底|立刻|马上|赶紧|赶快|"
    r"快)\s*)*"
    r"(?:你|您)?(?:们)?(?:就|也|可(?=别|不)|可以|能|能不能|可不可以|可否|能否|最好|务必|一定要?|要|得|应该|先|帮我|给我|"
    r"替我|帮忙|都|全都|全部|彻底|"
    r"立刻|马上|现在|还是|直接|赶紧|赶快|快|必须|需要)*\s*)"
)
ASKS = re.compile(
    r"[吗么]\W*$|什么|怎么|怎样|如何|为什么|为何|多少|多久|几[点个岁号次天]|哪[里个些儿家位天]?|谁|是不是|"
    r"有没有|会不会|是否(?!可以)|呢\W*$|"
    r"难道|来着"
)
_POLITE = re.compile(
    r"能不能|可不可以|可以.*[吗么]|能否|可否|是否可以|好[吗么不]|行[吗么不]|可以[吗么]|能.*[吗么]\W*$|麻烦"
)
CORRECTS = re.compile(
    r"^\W*(?:不对|不是(?=[,，。!！])|错了|哦?不(?=[,，。!！ ])|不不|等等|等一下|不好意思|抱歉|啊不|呃不|对不起|"
    r"哎呀|口误|更正|纠正|"
    r"应该是|"
    r"准确地说|准确说|其实不是)"
)
_THIRD = re.compile(
    r"(?:他|她|它|他们|她们|老板|同事|老师|医生|朋友|妈妈?|爸爸?|老公|老婆|孩子|儿子|女儿|客户|经理|领导|系统|"
    r"程序|软件|手机|电脑|模型|大家|"
    r"有人|别人|人们?|对方|她们|学生|房东|邻居|姐姐?|哥哥?|弟弟?|妹妹?|奶奶|爷爷|外婆|外公|对象|男朋友|女朋友|"
    r"男友|女友|室友)"
    r"(?:\S{0,6})$"
)

_SAID = r"(?:说|讲|提|告诉|聊|发|写|打|分享|透露|交代|提到|提起|坦白)"
_JUST = r"(?:刚才|刚刚|刚|方才|上面|前面|上一[句条]|前一[句条]|最后那?[句段])"
_MATTER = (
    r"(?:这|那)(?:件|个|些|段|句|条|番|点|种|回)?(?:事儿?|事情|话|内容|信息|消息|秘密|情况|东西|部分|对话|聊天|"
    r"对话内容|私事|想法)?"
)
_THIS = re.compile(
    rf"^(?:我)?(?:(?:{_JUST}|今天|这里)?(?:我|咱们?|我们)?(?:{_JUST})?(?:跟你|和你|对你|给你)?{_SAID}(?:给你|过|"
    rf"到)?(?:你)?(?:的|过的|"
    rf"了的)?"
    rf"(?:话|事儿?|事情|那些话|这些话|这些|那些|这句话?|那句话?|这件事|那件事|这段话?|那段话?|内容|东西|一切|"
    rf"所有(?:的|内容)?|那段|这段|消息|信息|秘密|全部|都)?"
    rf"|{_MATTER}|(?:以上|上面|前面|上述)(?:的|这些|那些)?(?:内容|对话|话|信息|所有内容|消息|事)?|{_JUST}(?:的|"
    rf"那|这)?(?:话|事儿?|事情|对话|消息|内容|"
    rf"那句话?|那件事|那些话?|那段话?|这句话?|那条消息|条消息|信息|句话|句|段|条|一切)|它|这一?切|这里的(?:对话|"
    rf"内容))"
    r"(?:全部|都|全都|统统|通通)?$"
)
_TOPIC = re.compile(
    rf"^(?:(?:所有|一切|任何)?(?:关于|有关)|(?:我)?(?:之前|以前|上次|昨天|前几天|早些时候|"
    rf"{_JUST})?(?:我)?(?:跟你|和你|"
    rf"对你)?{_SAID}(?:过)?(?:你)?(?:的)?"
    r"(?:关于|有关)?(?=.)|你(?:知道|记得|记住|了解|记录|存)的?(?:所有)?(?:的)?(?:关于|有关)?)"
)
_TOPIC_ENDS = re.compile(
    r"(?:的)?(?:这|那)(?:件|个|些|回|码|一?条|段|句)?(?:事儿?|事情|话|内容|信息|消息|秘密|情况|记录|说法|设定|"
    r"偏好|资料|东西)$"
    r"|的(?:事儿?|事情|话|内容|信息|消息|记录|记忆|情况|一切|所有(?:内容|信息|记录|事情)?|资料|那些事|部分|"
    r"相关(?:信息|内容))$|(?:这|那)(?:件|个|段|条)?事?$|"
    r"这一?点$|的$"
)
_FINAL = (
    r"(?:吧|了吧|好了|啊|哦|呀|嘛|呗|啦|了|就行|就好|谢谢|行吗|好吗|可以吗|好不好|吗|一下|掉|干净|都|全|全部|"
    r"，)*"
)
_FORGET_VERB = r"(?:忘掉|忘了|忘记掉?|忘却|抛到脑后|忘光|忘干净|忘)"
_DELETE_VERB = (
    r"(?:删掉|删除掉?|删了|删去|抹掉|抹去|抹除|清除掉?|清掉|清空|擦掉|擦除|去掉|移除|划掉|拿掉|消除|销毁|丢掉)"
)
_MEMORY = (
    r"(?:(?:从|在)?(?:你的?)?(?:长期)?(?:记忆|记录|脑子|脑海|备忘录?|档案|资料|笔记|数据库|存储)(?:库)?(?:里面?|"
    r"中|里头|当中)?)"
)
_FORGET = re.compile(rf"^{_FORGET_VERB}(?P<object>.*)$")
_DELETE = re.compile(rf"^(?:{_MEMORY}(?:把|将)?)?(?:{_DELETE_VERB})(?:{_MEMORY}的?)?(?P<object>.*)$")
_BA = re.compile(
    rf"^(?:{_MEMORY})?(?:把|将)(?P<object>.+?)(?:都|全部?|全都|统统|给我?|就|也|一起|彻底|也都|完全|赶紧|马上|"
    rf"立刻|直接|"
    rf"通通)*(?:给)?(?:{_MEMORY})?"
    rf"(?P<verb>{_FORGET_VERB}|{_DELETE_VERB}){_FINAL}$"
)
_TOPICALISED = re.compile(
    rf"^(?P<object>.+?)(?P<asked>(?:请|麻烦|你|您|就|都|全部?|也|可以|给我|帮我|替我|还是|最好|统统|通通|干脆|一律|"
    rf"赶紧|一并|彻底)+)(?:{_MEMORY})?(?P<verb>{_FORGET_VERB}|{_DELETE_VERB}){_FINAL}$"
    rf"|^(?P<object2>.+?)(?P<verb2>忘掉|忘了|忘记|{_DELETE_VERB})(?:吧|好了|就好|就行|了吧|掉吧)+$"
    rf"|^(?P<object4>.+?)(?=从){_MEMORY}(?P<verb4>忘掉|忘记|{_DELETE_VERB}){_FINAL}$"
    rf"|^(?P<object3>(?:关于|有关).+?)(?P<verb3>忘掉|忘记|{_DELETE_VERB}){_FINAL}$"
)
_AS_IF = re.compile(
    rf"^(?P<what>(?:{_JUST}|{_MATTER}|我)\S{{0,8}}?)?(?:你|您)?(?:就|全|都)*"
    r"(?:当|当作|当成|假装|权当)(?:我|刚才|这话|这事|这些|这个)*(?:从来|刚才|压根|什么都|啥都|"
    r"根本)*(?:没|没有|不曾)(?:说|提|讲|告诉|听|看|发生|"
    r"听到|看到)"
)
_OMITTED = re.compile(
    r"^(?:说|告诉|讲|带|拿|问|买|跟|和|是|怎么|为|什么|还|提醒|交|关|锁|写|做|吃|去|发|回|打|换|洗|给|自己|时间|"
    r"密码|初心|本)"
)
_MINE = re.compile(r"^(?:关于)?(?:我|咱|俺|自己)")
_VERB_ALONE = re.compile(
    rf"^(?:你|您|请|都|全|就|也|全都|统统|直接|给我|帮我|替我|麻烦)*(?:{_MEMORY})?(?:{_FORGET_VERB}|{_DELETE_VERB})"
    rf"(?:它|它们)?{_FINAL}$"
    r"|^(?:你|您|请|都|就|也|可|千万)*(?:别|不要|不用|甭)(?:再)?(?:继续)?(?:记|存|留|保存|保留|惦记)(?:着|住|了|下|下来)?"
    r"(?:它|它们)?(?:了|吧|啦|哦|啊)*$"
)
_SAID_OF_IT = re.compile(
    rf"(?:你|您|请|就|都)*(?:(?:别|不要|不用)再?(?:记|存|留|保存|保留)(?:着|住|了)*了?|{_DELETE_VERB}|不算数|不作数|作废|"
    r"不算|取消)(?:了|吧|啦)*$|^(?:你|您|请)*(?:别|不要|不用)再?(?:记|存|留|保存|保留)(?:着|住|了)?"
)
_NAMES_A_MATTER = re.compile(
    r"^(?:关于|有关|(?:那|这)(?:件|个|些)?(?:关于|有关)|我(?:跟你|和你)?(?:说过|提过|讲过)?的?.{1,20}(?:事|事情|"
    r"话|信息|消息)$)"
)

_NEGATION = (
    r"(?:别|不要|不用|不必|无需|无须|甭|勿|用不着|不需要|不想让你|不希望你|不想你|不许|不准|不能|不可以|不可|"
    r"不得|没必要|不该)"
)
_KEEP_VERB = (
    r"(?:记住|记下来?|记录下来|记录|记到\S{0,6}|记在\S{0,6}|记进\S{0,6}|记入\S{0,6}|记着|记得|记忆|记|保存|保留|"
    r"储存|存储|存下来|存档|存到\S{0,6}|"
    r"存进\S{0,6}|存|留存|留底|"
    r"归档|收录|写进\S{0,6}|写入\S{0,6}|写到\S{0,6}|放进\S{0,6}|加到\S{0,6}|加进\S{0,6}|录入|留下?记录|留痕|"
    r"做记录|做笔记|往心里去|当真)"
)
_UNKEPT_OBJECT = (
    rf"(?:(?:我)?(?:(?:{_JUST}|接下来|下面|以下|以上|上面|前面)(?:我)?(?:要|会|想|跟你|和你)*(?:{_SAID})?(?:过|"
    rf"到|给你)?(?:的|这|那|这些|"
    rf"那些)?|{_MATTER}|我(?:{_JUST})?(?:接下来|现在|要)*"
    rf"(?:跟你|和你|对你)?{_SAID}(?:的|过的|给你的|你的)?)"
    r"(?:这|那)?(?:些|个|件|句|段|条|一?句|番)?(?:话|事儿?|事情|内容|信息|消息|秘密|情况|东西|部分|对话|"
    r"一切)?(?:都|全|也|就|请|你|您|可|千万|一定|先)*)"
)
_UNKEPT_LEADS = re.compile(
    rf"^{_NEGATION}(?:再|去|给我|帮我|把|将|给|用|特意|往|在)*(?P<object>{_UNKEPT_OBJECT})?(?:都|给|"
    rf"全)*{_KEEP_VERB}(?P<tail>.*)$"
)
_UNKEPT_FOLLOWS = re.compile(
    rf"^(?P<object>{_UNKEPT_OBJECT}){_NEGATION}(?:再|去|给我|帮我|给|用|把它|特意|被)*"
    rf"(?:[往在向]\S{{1,6}}?(?:里面?|中|心上))?{_KEEP_VERB}(?P<tail>.*)$"
)
_UNKEPT_BARE_TAIL = re.compile(
    rf"^(?:下来|起来|住|到|进|在|入)?(?:{_MEMORY}|心里|脑子里|记忆里)?(?:去|里)?{_FINAL}(?:{_UNKEPT_OBJECT}|它|"
    rf"任何(?:东西|内容))?(?:下来|"
    rf"住)?{_FINAL}$"
)
_KEPT_NO_MORE = re.compile(
    rf"^(?P<object>(?:(?:关于)?(?:我|那|这).{{1,24}}?|\S{{2,24}}?(?=那个|这个|的事)))(?:的事儿?|的事情|[这那]件事|[这那]个)?"
    rf"(?:你|您|请|就|都|"
    rf"也)*{_NEGATION}(?:再|给我|帮我)*"
    rf"(?:记着|记住|记|留着|留|存着|保存着?|惦记着?)(?:了|啦|吧)*$"
)
_UNKEPT_TARGET = re.compile(
    rf"^{_NEGATION}(?:再|去|给我|帮我|把|将|给)*(?P<object>(?:关于)?我.{{1,30}}?)(?:都|给|全)*(?:记住|记下来?|"
    rf"记录下来|记录|保存下来|保存|存下来|"
    rf"存进\S{{0,6}}|存到\S{{0,6}}|写进\S{{0,6}}|记到\S{{0,6}}|记在\S{{0,6}}){_FINAL}$"
    rf"|^我?{_NEGATION}(?:再|继续|去|给我|帮我)*(?:记住|记着|记得|记下来?|记录|保存着?|保留着?|留着|存着|"
    rf"存)(?P<object2>(?:关于)?我(?!{_JUST})\S.{{1,30}})$"
)
_OFF_THE_RECORD = re.compile(
    r"^(?:(?:这|那|以下|下面|接下来)\S{0,8}|我)?(?:只是|都是|属于|是|就)?(?:私下|悄悄|偷偷|off the record)(?:里|"
    r"地)?(?:跟你|和你|对你|告诉你|给你|"
    r"一?句|点|说|讲|透露|聊|提|的|"
    r"几句|个秘密|句|吧|一下|话)*\s*$|^(?:听过|听完|看完|看过|说完|聊完|你听听|你听了)(?:你|您)?(?:就|便)(?:忘|算|过|好|"
    r"行|完)(?:了|掉|吧|啦|数)*\W*$"
    r"|^(?:(?:这|那|本|此)\S{0,6})?(?:不留|不要留|别留|不做|不作|不要有?)(?:任何)?(?:记录|底|痕迹|案底|存档)\W*$"
)
_NOT_INTO_MEMORY = re.compile(
    rf"^(?:{_UNKEPT_OBJECT})?(?:你|您)?{_NEGATION}(?:再|给我)*(?:往|进入?|写进|写入|留在|放进?|加进?|带进)(?:到)?(?:你的?)?"
    rf"(?:长期)?(?:记忆|记录|档案|笔记|备忘录?)(?:库)?(?:里面?|中)?(?:去)?(?:写|存|记|放|加|录)?{_FINAL}$"
)
_UNCLEAR = re.compile(
    r"^(?:(?:这|那)\S{0,4})?(?:你知道就(?:行|好)|(?:别|不要)(?:跟|和|对|告诉)(?:任何|别|其他)?人\S{0,4}|"
    r"保密(?:哦|啊|吧)?|要保密|替我保密|帮我保密|"
    r"只(?:跟|和)你(?:一个人)?说|"
    r"(?:只有)?你知我知|忘了(?:它|这个)?吧|算了忘了吧|别放在心上|别往心里去|(?:别|不要)再?提(?:这|那|"
    r"它)\S{0,4}(?:了)?)\W*$"
)

_REMEMBER = re.compile(
    r"^(?:(?:要|得|也|都|给我|帮我|替我|好好|牢牢)*)(?P<verb>记住|记下来?|记一下|记一笔|记着|记好|牢记|谨记|铭记|记得|"
    r"备注(?:一下)?|备忘(?=\W|$)|记个?(?:笔记|备忘)|存一下|存个?档|"
    r"记录(?:一下|下来)?|别忘了?|不要忘了?|别忘记|不要忘记|千万别忘了?|可别忘了?|记(?=一下|下|住))(?:一下|下|了|"
    r"哦|啊|好|：|:)*(?P<object>.*)$"
)
_BA_REMEMBER = re.compile(
    rf"^把(?P<object>.+?)(?:都|给|也|好好)*(?:记住|记下来?|记录下来|记录|记好|保存下来|保存|存下来|存好|存起来|"
    rf"(?:记|存|写|加|放|保存)(?:到|进|在|"
    rf"入){_MEMORY}(?:去|里)?){_FINAL}$"
)
_NAMED_TO_REMEMBER = re.compile(
    r"^(?:我|咱)\S{1,14}?(?:请|麻烦)?(?:你|您)(?:要|可得?|帮我|给我|替我)*(?:记好|记住|记一下|记下来?|记着)(?:了|哦|啊|吧)*$"
)
_KEEP_THIS = re.compile(rf"^(?:{_THIS.pattern[1:-1]}|一下|哦|啊|好|吧|了)*$")
_OWN = re.compile(r"^(?:我|咱|俺|我们|咱们|本人)")
_STATES = re.compile(r"是|在|叫|有|对.+过敏|喜欢|讨厌|不吃|不喝|不能|住|为|=|：|:|\d|爱|属|姓|要|到|去|会|生日|号")
_NO_STATEMENT = re.compile(
    r"^(?:吗|么|那次|那时|那天|当时|小时候|上次|以前|的|我们(?:去年|以前|上次|那次|一起)|你|了|单词|方法|技巧|"
    r"公式)"
)

_WHEN_ALWAYS = re.compile(
    r"(?:从(?:现在|今天?|今往后|此|这次|下次|今以后|明天)(?:起|开始|往后|以后)?|以后|今后|往后|日后|将来|下次|"
    r"之后|接下来|总是|每次|一律|永远|始终|一直|每一?[次回]|每当|凡是|"
    r"只要|"
    r"无论(?:什么|何)时候|默认)"
)
_STOPS = re.compile(
    r"^(?:你|您)?(?:别|不要|不许|不用|少)(?:再|总是?|老是?|一直|每次都?|动不动就)+(?:叫我|称呼我|喊我|管我叫|用(?:表情|emoji|英文|"
    r"中文|敬语|感叹号|专业术语|列表|表格)|(?:跟|对|向|和)我(?:道歉|说教|客套|寒暄|说对不起)|道歉|说教|客套|给我(?:推荐|建议|讲|发)|"
    r"推荐|问我|提醒我|劝我|夸我|重复我|反问|加(?:表情|注释|标题)|提我|提起我)",
    re.I,
)
_TO_ASSISTANT = re.compile(
    r"(?:你|您)(?!的名字)|请|回答|回复|答复|称呼我|叫我|喊我|跟我说|和我说|对我说|说话|给我|告诉我|提醒我|推荐|"
    r"用(?:中文|英文|英语|法语|日语|韩语|德语|西班牙语|粤语|繁体|简体|"
    r"表格|"
    r"列表|要点|公制|摄氏|人民币|\S{1,6}(?:回答|回复|说|写|语气|格式|单位))|表情|emoji|简短|简洁|详细|啰嗦|废话|"
    r"建议|解释|举例|例子|代码|总结|翻译|语气|客套|道歉|寒暄|结论|对我|跟我|和我|提我|提起我|提到我|提醒|评价我|"
    r"感叹号|分点|markdown"
    r"|(?:就|都|改|请|一律)用|问我|聊天|先说|先给|列出|附上|写",
    re.IGNORECASE,
)
_PLANS_OWN = re.compile(
    r"^(?:我|咱|我们|他|她|孩子|老公|老婆)(?!的(?:问题|消息|回答|称呼)|问|说\S*(?:你|请)|不(?:想|要)你|要你|"
    r"想让你|希望你|想你|喜欢你|让你|需要你|发|提|给你|叫你|聊)"
)
_TAKES_ORDER = re.compile(
    r"别|不要|不用|请|要|都|得|只|少|多|尽量|必须|应该|先|记得|用|叫|称呼|回答|回复|说|给|提醒|推荐|简短|简洁|"
    r"详细|希望|可以"
)


def read(clause: Clause) -> Reading | None:
    """What a clause commands; None where it commands nothing."""
    text = clause.text
    lead = LEAD.match(text)
    at = lead.end() if lead else len(text) - len(text.lstrip())
    if re.search(r"(?:说|写道|唱|讲|告诉我|提醒我|叫|劝我|让我|喊)\W*$", clause.before[-8:]) and not re.search(
        r"(?:我|跟你|和你|想|话)说\W*$", clause.before[-8:]
    ):
        return None
    if clause.asks and not _POLITE.search(f"{text}{clause.after}"):
        return None
    asks = ASKS.search(text) and not re.search(r"我(?:说|提|讲)(?:了|过)?(?:什么|啥)", text)
    if not clause.asks and asks and not _POLITE.search(text) and not _AS_IF.match(text[at:]):
        return None
    starts = dict.fromkeys((at, at + (request.end() if (request := _REQUEST.match(text[at:])) else 0)))
    for rule in (_of_what_was_named, _do_not_remember, _standing, _forget, _remember, _unclear):
        for start in starts:
            body = text[start:].rstrip(" \t。!！~～")
            if body and (found := rule(body, start, clause)):
                return None if clause.asks and _asks_about_ability(found, text) else found
    return None


def _asks_about_ability(found: Reading, text: str) -> bool:
    """“你能忘记我说过的话吗”: nothing in particular is named."""
    return found.kind == "forget" and found.target is None and not re.search(rf"{_JUST}|这|那|上一", text)


def _forget(body: str, at: int, _clause: Clause) -> Reading | None:  # noqa: PLR0911 — one rule after the other
    told = re.match(r"^(?P<object>.{2,20}?的(?:事儿?|事情|话))(?:你|您|请|就|都|也)*(?=当|假装|权当)", body)
    if told and _AS_IF.match(body[told.end() :]):
        return _forgotten(told["object"], at, sure=True, strict=False)
    if as_if := _AS_IF.match(body):
        last = re.match(r"上一|前一|最后", as_if["what"] or "")
        return Reading("forget", "previous" if last else "here")
    ba = _BA.match(body)
    if ba:
        deletes = not ba["verb"].startswith(("忘", "抛"))
        return _forgotten(
            ba["object"], at + ba.start("object"), sure=bool(re.search(_MEMORY, body)), strict=deletes
        )
    topic = _TOPICALISED.match(body)
    if topic:
        group = next(name for name in ("object", "object2", "object3", "object4") if topic[name])
        thing, verb = topic[group], topic["verb"] or topic["verb2"] or topic["verb3"] or topic["verb4"]
        asked = bool(re.search(r"请|麻烦|你|您|给我|帮我|替我", topic["asked"] or "")) and not re.search(
            r"叫|让|劝|要|怪|怕|说$", thing[-2:]
        )
        if re.match(
            r"^我(?:居然|竟然|都|也|已经|又|把|总|常|老|差点|快|早就?|好像|可能|真的?|一下子?|给|就|全)*$", thing
        ) or (not asked and not _NAMES_A_MATTER.match(thing) and _THIRD.search(thing)):
            return None
        if not re.search(r"别|不要|不能|不会|没|难以|无法|怎么|怕", thing[-4:]):
            deletes = not verb.startswith(("忘", "抛"))
            return _forgotten(thing, at, sure=bool(re.search(_MEMORY, body)), strict=deletes)
    found = _FORGET.match(body)
    if found:
        thing = found["object"]
        if _OMITTED.match(thing) and not _THIS.match(_bare(thing)):
            return None
        return _forgotten(thing, at + found.start("object"), sure=body.startswith("忘掉"), strict=False)
    deleted = _DELETE.match(body)
    if deleted:
        return _forgotten(
            deleted["object"],
            at + deleted.start("object"),
            sure=bool(re.search(_MEMORY, body)),
            strict=True,
        )
    return None


def _of_what_was_named(body: str, _at: int, clause: Clause) -> Reading | None:
    """“关于我前男友的事，都忘了吧”: the clause before names what the verb is about."""
    if not _VERB_ALONE.match(body) or clause.introduces:
        return None
    parts = [each.strip() for each in re.split(r"[,，]", clause.before.rstrip(" ,，")) if each.strip()]
    named = next((each for each in parts if _NAMES_A_MATTER.match(each)), parts[-1] if parts else "")
    bare = _SAID_OF_IT.sub("", named)
    is_matter = bare != named or _NAMES_A_MATTER.match(named) or _TOPIC_ENDS.search(bare) or _TOPIC.match(bare)
    named = re.sub(r"^(?:请|麻烦)?(?:把|将)", "", bare).strip()
    # “I am divorced, don't keep it” tells something; it names nothing that was told.
    if not named or not (is_matter or re.fullmatch(r"我的\S{1,10}", named)) or CORRECTS.match(named):
        return None
    offset = clause.before.rfind(named) - len(clause.before)
    reading = _forgotten(named, 0, sure=True, strict=False)
    if reading is None or reading.target is None:
        return reading
    begin, stop = reading.target
    gap = clause.start - (clause.sentence_start + len(clause.before))
    plain = bool(_NAMES_A_MATTER.match(named) or _MINE.match(named))
    place = (offset - gap + begin, offset - gap + stop)
    return Reading("forget", "stated", place, needs_match=not plain)


def _bare(thing: str) -> str:
    return re.sub(rf"{_FINAL}$", "", thing)


def _forgotten(thing: str, at: int, *, sure: bool, strict: bool) -> Reading | None:  # noqa: PLR0911 — one rule after the other
    """`strict` = a verb that is said of files and texts as well."""
    bare = _bare(thing)
    if not bare:
        return None
    if re.match(
        r"^(?:第[一二三四五六七八九十\d]+|最后|倒数|所有的?|这|那|上面|前面)(?:一|两|几)?(?:行|列|段落|个?字|"
        r"个?空格|个?文件|个?标点|个?词|张|页|点|条代码)",
        bare,
    ):
        return None
    if _THIS.match(bare):
        if re.match(r"^(?:我)?(?:上一|前一|最后)", bare):
            return Reading("forget", "previous")
        if strict and not sure and re.fullmatch(r"(?:这|那)(?:个|些|段|条|句)?|它", bare):
            return None
        return Reading("forget", "here")
    topic = _TOPIC.match(bare)
    begins = topic.end() if topic else 0
    ends = _TOPIC_ENDS.search(bare, begins)
    stop = ends.start() if ends and ends.start() > begins else len(bare)
    target = bare[begins:stop]
    if not target or re.fullmatch(r"我|你|他|她|它|这|那|所有|一切|过去|烦恼|时间", target):
        return None
    mine = bool(_MINE.match(bare))
    named = bool(ends and re.search(r"事|话|信息|消息|秘密|记录|记忆|资料", ends.group()))
    if strict and not sure and not (mine or (topic and topic.group())):
        return None
    if not (mine or topic or named or sure or re.match(r"^(?:这|那|刚|之前|上次|他|她|我们)", bare)):
        return None
    return Reading("forget", "stated", (at + begins, at + stop), needs_match=not (mine or topic or named))


def _do_not_remember(body: str, at: int, _clause: Clause) -> Reading | None:  # noqa: PLR0911 — one rule after the other
    if _OFF_THE_RECORD.match(body) or _NOT_INTO_MEMORY.match(body):
        return Reading("do_not_remember", "here")
    for pattern in (_UNKEPT_LEADS, _UNKEPT_FOLLOWS):
        found = pattern.match(body)
        if found and _UNKEPT_BARE_TAIL.match(found["tail"]):
            verb = body[: found.start("tail")]
            bare = not found["object"] and not found["tail"].strip("。吧啊哦了")
            # By itself “不用记得” or “别存” says nothing of what was told.
            if bare and not re.search(r"记住|记录|记下|记$|留底|存档|留记录|保存", verb):
                return None
            if re.search(r"(?:记得|当真|往心里去|做笔记)$", verb) and not found["object"]:
                return None
            said_before = bool(found["object"] and re.search(rf"{_JUST}|{_SAID}过", found["object"]))
            return Reading("do_not_remember", "before" if said_before else "here")
    kept = _KEPT_NO_MORE.match(body)
    if kept and not _THIS.match(kept["object"]) and not re.fullmatch(_MATTER, kept["object"]):
        stop = kept.end("object")
        told = re.search(r"再|着|留|[了啦]$", body[stop:])
        kind: MemoryChangeKind = "forget" if told else "do_not_remember"
        return Reading(kind, "stated", (at + kept.start("object"), at + stop))
    target = _UNKEPT_TARGET.match(body)
    if target:
        group = "object" if target["object"] else "object2"
        thing = _bare(target[group])
        ends = _TOPIC_ENDS.search(thing)
        stop = ends.start() if ends and ends.start() > 0 else len(thing)
        ended: MemoryChangeKind = "forget" if re.search(r"再|继续|记着|存着|留着", body) else "do_not_remember"
        return Reading(ended, "stated", (at + target.start(group), at + target.start(group) + stop))
    return None


def _remember(body: str, at: int, clause: Clause) -> Reading | None:  # noqa: PLR0911, PLR0912 — one rule after the other
    if clause.asks and re.search(r"[吗么]\W*$", body) and not _POLITE.search(clause.text):
        return None
    ba = _BA_REMEMBER.match(body)
    if ba:
        thing = ba["object"]
        if _THIS.match(thing):
            return Reading("remember", "here")
        return (
            Reading("remember", "stated", (at + ba.start("object"), at + ba.end("object")))
            if _OWN.match(thing)
            else None
        )
    named = _NAMED_TO_REMEMBER.match(body)
    if named and clause.after.strip(" ,，:："):
        return Reading("remember", "stated", (at, len(clause.text)), "sentence")
    found = _REMEMBER.match(body)
    if not found:
        return None
    verb, thing = found["verb"], found["object"].lstrip(" ,，:：")
    start = at + found.end("object") - len(thing)
    negated = "忘" in verb and not verb.startswith("备忘")
    if not thing or _KEEP_THIS.match(_bare(thing)):
        if negated:
            return None
        if clause.introduces or (clause.after.strip(" ,，") and _OWN.match(clause.after.lstrip(" ,，:："))):
            begins = clause.end - clause.start
            return Reading("remember", "stated", (begins, begins), "message" if clause.introduces else "sentence")
        if verb in {"记得", "备注", "记录", "记录一下"} and not _THIS.match(_bare(thing) or "无"):
            return None
        asks_for_it = re.match(r"(?:请|帮我|麻烦|你|一定|要|务必)", clause.text.lstrip()) or _THIS.match(
            _bare(thing) or "无"
        )
        after = clause.after.lstrip(" ,，:：")
        if after and _STATES.search(after) and (asks_for_it or verb not in {"记住"}):
            begins = clause.end - clause.start
            return Reading("remember", "stated", (begins, begins), "sentence")
        return Reading("remember", "here") if asks_for_it or verb in {"记住", "记下来", "记一下", "记下"} else None
    if _NO_STATEMENT.match(thing) or not _STATES.search(thing):
        return None
    own = bool(_OWN.match(thing))
    if (negated or verb == "记得") and not own:
        return None
    if (
        not own
        and verb in {"记住", "牢记", "谨记", "铭记"}
        and not (clause.introduces or re.search(r"是|在|叫|\d", thing))
    ):
        return None
    if re.search(r"的(?:时候|日子|那天|方法|技巧|样子|地方)$", thing):
        return None
    return Reading("remember", "stated", (start, len(clause.text)), "sentence")


def _standing(body: str, at: int, clause: Clause) -> Reading | None:  # noqa: PLR0911 — one rule after the other
    if _STOPS.match(body):
        return Reading("standing", "stated", (at, len(clause.text)), "sentence")
    when = _WHEN_ALWAYS.search(body)
    if not when or when.start() > 12:  # noqa: PLR2004 — at the clause's beginning, or behind what is wished
        return None
    said = f"{clause.text}{clause.after}"
    after = body[when.end() :].lstrip(" ,，") or clause.after.lstrip(" ,，")
    if re.match(r"的(?!回答|回复|答复|对话|聊天|消息|答案|交流|内容|问题)", after) or after.startswith(
        ("再说", "有机会", "会", "还会", "可能", "见")
    ):
        return None
    weak = when.group() in {
        "之后",
        "接下来",
        "下次",
        "将来",
        "一直",
        "永远",
        "总是",
        "每次",
        "始终",
        "每当",
        "凡是",
        "只要",
        "日后",
    }
    before = body[: when.start()]
    if _PLANS_OWN.match(after) or (before and _PLANS_OWN.match(before)):
        return None
    if re.match(r"^我(?:每次)?(?:问|说|提|发)", after):
        after += clause.after  # “每次我问菜谱，都用克”: what is wished follows
    if re.match(r"(?:回答|回复|答复|跟我|和我|给我)", before):
        after = body
    if not _TO_ASSISTANT.search(after) or (weak and not _TAKES_ORDER.search(after)):
        return None
    if weak and re.match(r"^(?:你|您)(?:总是|一直|每次|都|老是)", body) and not re.search(r"别|不要|请|要", body):
        return None
    if when.group() == "接下来" or (
        when.group() in {"之后", "下次"} and not re.search(r"都|一律|先|用|别|不要|每", said)
    ):
        return None
    if re.match(r"^(?:你|您)?(?:会|能|可以|是|觉得|认为|打算|想)", after) and not re.match(
        r"^(?:你|您)?(?:可以|能)(?:不|别|用|叫|直接|少|多|只)", after
    ):
        return None
    return Reading("standing", "stated", (at, len(clause.text)), "sentence")


def _unclear(body: str, _at: int, clause: Clause) -> Reading | None:
    if clause.asks or not _UNCLEAR.match(body):
        return None
    kind = "forget" if body.startswith(("忘", "算了")) else "do_not_remember"
    return Reading("forget" if kind == "forget" else "do_not_remember", "here", certainty="unclear")
