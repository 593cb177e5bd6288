"""Plain statements in Chinese: the subject, and the frame that says what to keep of the statement."""

import re
from collections.abc import Iterator

from services.memory.agent.fact import Fact, Frame
from services.text.clauses import Clause

_ADVERBS = (
    r"(?:现在|目前|如今|最近|一直|已经|其实|也|都|还|还是|最|更|很|非常|特别|超级|超|挺|比较|有点儿?|真的|真|就|"
    r"才|刚刚|刚|"
    r"从小|今年|个人|确实|平时|平常|一般|向来|从来|可|又|再|只|天生|本来就|算是|大概|差不多|快|终于|正|正在|"
    r"打小|严重|"
    r"主要|基本上?|总是|经常|常常|这两年|这几年|这学期|有些|明年|自己|一个人|一家人?|全家|老早|早就|本人|这边|"
    r"上个?月|上周|昨天|去年|前年|前阵子|前几天|今天|刚才|不久前|几年前|大学毕业后?|毕业后|结婚后|退休后|后来)"
)
_NEGATION = r"(?:不再|再也不|不太|不怎么|不是很|不大|并不|从不|从来不|不|没有|没)"
_NOT_PLAIN = re.compile(
    r"如果|要是|假如|假设|万一|可能|也许|大概会|或许|好像|似乎|仿佛|听说|据说|以为|差点|差一点|希望|想象|假装|"
    r"梦见|梦到|幻想|"
    r"比如|例如|开玩笑|才怪|反话|呵呵|可太|真是太|(?:真|好|太)(?:喜欢|爱).*[啊哦呢呀]$|小说[里中]|剧本|角色|"
    r"电影里|歌词|台词|故事里|扮演|巴不得|恨不得|"
    r"应该|恐怕|说不定|"
    r"(?:他|她|它|妈|爸|老师|医生|朋友|同事|老板|客户|有人|别人|人家|大家|网友|对方|老婆|老公|同学|领导|你|"
    r"们)(?:都|总|老|常|还|"
    r"也|就|一直)?(?:说|讲|觉得|认为|问|告诉|以为)|[“”「」\"]|不知道|不确定|算不算|是否|怎么|什么|哪|谁|吗$|呢$|"
    r"多少|为什么|干嘛|啥|咋"
)
_PAST = re.compile(r"以前|曾经|曾|过去|小时候|原来|原先|从前|当年|那时候?|之前|本来")
_SELF = r"(?:我们?(?:家|俩|两口子|一家)?|本人|咱们?|俺们?)"
_KIN = (
    r"(?:大|小|二|三|老|亲)?(?:老婆|妻子|太太|媳妇|老公|丈夫|先生|儿子|女儿|闺女|孩子|宝宝|爸爸?|妈妈?|父亲|"
    r"母亲|爸妈|父母|"
    r"姐姐?|妹妹?|哥哥?|弟弟?|爷爷|奶奶|外公|外婆|姥姥|姥爷|女朋友|男朋友|女友|男友|对象|未婚[夫妻]|室友|闺蜜|爹|娘|姑[姑妈父]?|姨[妈父]?|舅[舅妈]?|叔叔?|伯[伯父母]|婶|嫂子?|姐夫|妹夫|"
    r"岳父|岳母|公公|"
    r"婆婆|侄子|侄女|外甥女?|孙子|孙女|双胞胎|表[哥弟姐妹]|堂[哥弟姐妹]|导师|老板|好朋友|发小)"
)
_PET = (
    r"(?:猫咪?|狗狗?|猫猫|兔子|仓鼠|鹦鹉|乌龟|金毛|柯基|泰迪|柴犬|哈士奇|布偶猫?|橘猫|英短|美短|拉布拉多|"
    r"边牧|博美|萨摩耶|宠物|龙猫|八哥|金鱼)"
)
_COUNT = r"(?:[\d一两二三四五六七八九十几]+)?[个只条位对匹头]?"
_DIGITS = r"[\d零一二两三四五六七八九十百半]+"
_NAME = (
    r"(?P<V>[\u4e00-\u9fff·]{1,5}?(?:[A-Za-z]{1,8})?|[A-Za-z][A-Za-z .'-]{0,24}?)(?:就行|就好|就可以|即可|好了|"
    r"就行了|就好了|"
    r"吧|哦|啦|哈|呀)*$"
)
_END = r"(?:了|啦|呢|的|哦|啊|呀|吧|嘛|哈)*$"
_ENDS = re.compile(
    r"(?:[,，;；:：(（]|(?:但是?|不过|可是|因为|所以|而且|然后|已经|都|有|"
    r"快)(?:[\d一二两三四五六七八九十几半多好]*(?:年|个月|天|周)(?:了|多了?)?).*$|"
    r"(?:但是|不过|可是|因为|所以|而且|然后).*$|(?<=[^\d孕])[\d一二两三四五六七八九十几半多好]+(?:年|个月|天|周)"
    r"(?:多)?了?$|"
    r"已经.*$|很久了?$|好久了?$)"
)
_ME = ("我", "咱", "本人", "俺")
_SPACE = re.compile(r"(?<=[\u4e00-\u9fff]) | (?=[\u4e00-\u9fff])")
_NAMED = re.compile(r"(?:名字)?叫(?P<V>[\u4e00-\u9fffA-Za-z]{1,8})")
_MARKS = " .,;:!?。，；：！？、~～"
_LONGEST = 30
_LONGEST_LOVE = 8
"""爱 is a liking only before something that one does."""
_VAGUE = re.compile(
    r"^(?:第|来不及|迟到|麻烦|打扰|忘|被|误会|失败|出错|你|您|它|他|她|这|那|哪|什么|怎么|的是|上了?$|我$|一下|"
    r"东西$|一个?$|起来|家$|家里$|学校$|公司$|一起$|"
    r"外面$|这里|那里|"
    r"同一|隔壁|楼上|楼下|附近|别人|自己$|大家|谁|不|没|了|过|着|得|完|点|到|看看|试试|想|问|说|听说)"
)
_JOB = (
    r"(?:[^\s,，是在的]{0,10}?(?:师|员|医生|护士|教授|律师|作家|司机|厨师|警察|老板|记者|演员|公务员|学生|"
    r"研究生|博士生|博士后|"
    r"程序员|经理|总监|会计|编辑|翻译|导游|主播|博主|画家|歌手|军人|消防员|飞行员|空姐|店长|秘书|顾问|农民|工人|"
    r"保安|外卖员|教练|"
    r"志愿者|前台|客服|实习生|助理|行政|文员|收银|保洁|主管|组长|学徒|助教|主任|校长|院长|护工|保姆|骑手|裁判|策划|美工|采购|出纳|店主|自由职业者?|全职妈妈|家庭主妇|产品经理|销售|运营|法官|检察官|研究员|大夫|工匠|木匠|裁缝|摄影师))"
)
_ILLNESS = (
    r"(?:糖尿病|高血压|低血压|高血脂|哮喘|胃病|胃炎|胃溃疡|鼻炎|过敏性鼻炎|心脏病|偏头痛|失眠|抑郁症|焦虑症|"
    r"湿疹|颈椎病|腰椎间盘突出|"
    r"腰椎病|关节炎|痛风|甲亢|甲减|甲状腺结节|脂肪肝|贫血|近视|散光|色盲|色弱|癫痫|乙肝|结石|肾结石|胆结石|"
    r"牛皮癣|荨麻疹|乳糖不耐受?|"
    r"多动症|强迫症|风湿|白内障|青光眼|耳鸣|幽闭恐惧症|恐高症?|蚕豆病|痔疮|骨质疏松)"
)
_LANGUAGE = (
    r"(?:英语|英文|法语|德语|西班牙语|日语|韩语|俄语|粤语|意大利语|葡萄牙语|阿拉伯语|泰语|越南语|普通话|中文|"
    r"闽南话|闽南语|上海话|四川话|"
    r"客家话|荷兰语|瑞典语|印地语|马来语|希腊语|手语)"
)
_LANGUAGES = rf"(?P<V>{_LANGUAGE}(?:[和、跟及与,，]{_LANGUAGE})*)"
_INSTRUMENT = (
    r"(?:钢琴|吉他|古筝|琵琶|尤克里里|贝斯|电子琴|古琴|小提琴|大提琴|二胡|手风琴|笛子|萨克斯|长笛|小号|唢呐|"
    r"葫芦丝|口琴|架子鼓|鼓|"
    r"[\u4e00-\u9fff]{1,2}球|太极拳?|麻将|桥牌|高尔夫)"
)
_THING = (
    r"(?:车|房|手机|电脑|笔记本|相机|钢琴|吉他|自行车|摩托车|电动车|iPhone|华为|小米|特斯拉|比亚迪|奔驰|"
    r"宝马|奥迪|无人机|平板|iPad|游戏机)"
)
_FUTURE = (
    r"(?:明天|后天|大后天|今晚|明晚|明早|下(?:个|下)?(?:周|星期|礼拜|月)[一二三四五六日天末]?|(?:这|"
    r"本)?周[一二三四五六日天末]|星期[一二三四五六日天]|"
    r"明年|后年|[\d一二两三四五六七八九十]+(?:天|周|个月|年|个?星期)(?:以)?后|"
    r"[\d一二三四五六七八九十]+月(?:[\d一二三四五六七八九十]+[日号]|底|初|中旬|份)?|"
    r"[\d一二三四五六七八九十]+[号日]|月底|年底|国庆|春节|过年|暑假|寒假|五一|元旦|中秋|圣诞|下学期|这个月底|"
    r"今年(?:夏天|秋天|冬天|春天|年底))"
)

_FRAMES: tuple[Frame, ...] = (
    Frame(
        "(?:的?(?:名字|全名|姓名|真名)(?:叫|是)|名叫|叫做?)",
        "name",
        shape=r"(?!你|他|她|它|什么|外卖|车|醒|了|不|做|个|来|人|停|我|好|苦|板|到|过|去)" + _NAME,
    ),
    Frame("姓", "name", "姓{}", shape=r"(?P<V>[\u4e00-\u9fff]{1,2})$"),
    Frame("的?(?:小名|外号|昵称|绰号|花名|英文名)(?:叫|是)", "preferred_name", shape=_NAME),
    Frame("的?生日(?:是|在)", "birthday", shape=r"(?P<V>.*[\d一二三四五六七八九十].*)$"),
    Frame(
        "(?:是)?",
        "birthday",
        "{}出生",
        past="{}出生",
        shape=r"(?P<V>[\d一二三四五六七八九十零〇]+年?(?:[\d一二三四五六七八九十]+月)?(?:[\d一二三四五六七八九十]+[日号])?)(?:出?生的?|的)$",
    ),
    Frame("出生于", "birthday", "{}出生", past="{}出生", shape=r"(?P<V>.*\d.*年.*)$"),
    Frame("属", "zodiac", "属{}", shape=r"(?P<V>[鼠牛虎兔龙蛇马羊猴鸡狗猪])的?$"),
    Frame("(?:的?年龄是)?", "age", "{}岁", shape=rf"(?P<V>{_DIGITS})岁{_END}"),
    Frame("(?:的?(?:身高|个子))(?:是|有|大概|差不多)*", "height", "身高{}", shape=r"(?P<V>[\d一二两].{0,10})$"),
    Frame("(?:的?体重)(?:是|有|大概|差不多)*", "weight", "体重{}", shape=r"(?P<V>[\d一二两].{0,10})$"),
    Frame("(?:的?鞋码是?|穿)", "shoe_size", "{}码", shape=r"(?P<V>\d[\d.]*)码(?:的?鞋)?$"),
    Frame("的?血型是", "blood_type", shape=r"(?P<V>(?:A|B|AB|O)型?.{0,5})$"),
    Frame("是", "blood_type", shape=r"(?P<V>(?:A|B|AB|O)型血?)的?$"),
    Frame("(?:的?(?:手机号码?|电话号?码?)是)", "phone_number", shape=r"(?P<V>\+?[\d -]{6,})$"),
    Frame("的?(?:邮箱|email|邮件地址)是", "email", shape=r"(?P<V>\S+@\S+\.\w+)$"),
    Frame("(?:的?母语是)", "languages", "母语是{}", shape=_LANGUAGES),
    Frame("(?:会说|会讲|能说|精通)", "languages", "会说{}", denied="不会说{}", shape=_LANGUAGES),
    Frame("在?(?:学习?|自学)", "languages", "在学{}", shape=_LANGUAGES + r"(?:呢|了)?$"),
    Frame(
        "(?:居住在|定居在|定居|家住|住在|住(?!在)|家在|搬家到了?|搬到了?|搬去了?|搬来了?|搬回了?|移居到?了?|"
        "迁居到?了?)",
        "home",
        "住在{}",
        denied="不再住在{}",
        shape=r"(?P<V>(?!校|院|宿舍|一起|酒店|这|那|哪|新(?:家|房|的|公司|小区|地方|校区)|楼|得|了|过|不|下|进|"
        r"出|他|她|你|隔壁|同|几)[^了,，"
        r"\s]{1,15}?)" + _END,
    ),
    Frame("在", "home", "住在{}", shape=r"(?P<V>[^了,，\s]{2,12}?)(?:生活|定居|居住|安家|租房住?)" + _END),
    Frame(
        "(?:从.{1,10}?)?搬(?:家)?(?:到|去|来|回)了?",
        "home",
        "住在{}",
        shape=r"(?P<V>(?!这|那|新(?:家|房|的|公司|小区|地方)|楼|隔壁)[^了,，\s]{2,15}?)(?:没多久|不久|"
        r"不到.{1,4})?" + _END,
    ),
    Frame(
        "(?:来自|老家在|老家是|的老家在|的老家是|的家乡是|籍贯是?)",
        "hometown",
        "来自{}",
        shape=r"(?P<V>[\u4e00-\u9fff]{2,6}?)(?:人|的)?$",
    ),
    Frame(
        "是?",
        "hometown",
        "来自{}",
        shape=r"(?P<V>(?!一)(?:(?!是)[\u4e00-\u9fff]){2,4}?)(?<![病好坏新老大女男情证家选责名器闲病个])人$",
    ),
    Frame("在", "work", "在{}实习", shape=r"(?P<V>(?!家|这|那)[^,，\s]{2,20}?)实习" + _END),
    Frame(
        "在",
        "work",
        "在{}工作",
        denied="不再在{}工作",
        shape=r"(?P<V>(?!家|考虑|想|这|那|哪|找|努力|认真|当前|现在|目前)[^,，\s]{1,20}?)(?:工作|上班|任职|就职)"
        r"(?:了?(?:.{1,4}(?:年|个月|天)(?:多)?)?)?" + _END,
    ),
    Frame(
        "在",
        "work",
        "在{}",
        shape=rf"(?P<V>(?!家|考虑|想|这|那|哪|找)[^,，\s]{{2,15}}?(?:当|做|担任){_JOB}){_END}",
    ),
    Frame(
        "(?:跳槽到?了?|入职了?|加入了?|跳槽去了?|应聘上了?|进了)",
        "work",
        "在{}工作",
        shape=r"(?P<V>(?!一家|新|这|那|你|我)[\u4e00-\u9fffA-Za-z]{2,12}?)(?:公司)?" + _END,
    ),
    Frame(
        "(?:是做|做|从事|干)",
        "work",
        "做{}",
        shape=r"(?P<V>[^,，\s了着完过]{0,10}?(?:行业|生意|销售|设计|开发|运营|前端|后端|外贸|电商|研发|测试|"
        r"教育|培训|金融|物流|餐饮|建筑|工作|算法))(?:的|工作)*$",
    ),
    Frame("(?:是|当)(?:一名|一位|一个|名|个|位|做)?", "work", "是{}", past=None, shape=rf"(?P<V>{_JOB})的?$"),
    Frame("(?:退休)", "work", "退休了", shape=r"(?P<V>)(?:了|在家|很久)*$"),
    Frame("(?:被裁员?|失业|下岗)", "work", "失业了", shape=r"(?P<V>)(?:了|在家)*$"),
    Frame("(?:辞职|离职|裸辞)", "work", "辞职了", shape=r"(?P<V>)(?:了|在家|创业|休息)*$"),
    Frame(
        "在",
        "studies",
        "在{}",
        shape=r"(?P<V>(?!家|这|那)[^,，\s]{2,15}?(?:读书|读研|读博|念书|念大学|上大学|读大学|留学|上学|读高中|"
        r"上高中|读[^,，\s]{1,8}专业|读本科))" + _END,
    ),
    Frame("(?:学的是|读的是|的专业是|主修)", "studies", "学{}", shape=r"(?P<V>[^,，\s]{2,12}?)(?:专业)?$"),
    Frame(
        "(?:是|在)?(?:读|上|念)?",
        "studies",
        "{}",
        shape=r"(?P<V>(?:大[一二三四]|高[一二三]|初[一二三]|研[一二三]|[一二三四五六]年级)(?:学生|"
        r"的学生)?)(?:了|的)?$",
    ),
    Frame("(?:毕业于|是从)", "studies", "毕业于{}", past="毕业于{}", shape=r"(?P<V>[^,，\s]{3,15}?)(?:毕业的?)?$"),
    Frame(
        "对",
        "allergies",
        shape=r"(?P<V>(?!你|这|那|它|什么)[^,，\s]{1,20}?)(?:其实|已经|现在|并|也|都|又)*(?P<denies>不|没有|"
        r"没)(?:再)?过敏" + _END,
    ),
    Frame(
        "对",
        "allergies",
        shape=r"(?P<V>(?!你|这|那|它|什么)[^,，\s]{1,20}?)(?:都|有点|有些|严重|轻微|轻度|特别|很|也|有|会|非常)*(?:过敏)"
        + _END,
    ),
    Frame(
        "",
        "allergies",
        shape=r"(?P<V>(?!对|皮肤|鼻子?|脸|眼|身体|嗓子|全身|换季|会|容易|老是?|总|又|没|不|有|很|好像|这|那|一|吃|喝|碰)"
        r"[^,，\s对不没]{1,6}?)(?:都|有点|有些|严重|轻微|轻度)*过敏" + _END,
    ),
    Frame("在?(?:学习?|练习?)", "hobbies", "在学{}", shape=rf"(?P<V>{_INSTRUMENT}){_END}"),
    Frame(
        "(?:是)?",
        "health",
        "{}",
        shape=r"(?P<V>乳糖不耐受?|过敏体质|左撇子|色盲|色弱|怀孕[\d一二三四五六七八九两十]*(?:个月|周)?)(?:的|"
        r"了)*$",
    ),
    Frame(
        "(?:有|得了|患有|患了|得过|查出了?|确诊了?|犯)(?:点|轻度|轻微|重度|严重的?|先天性)?",
        "health",
        "有{}",
        denied="",
        past=None,
        shape=rf"(?P<V>{_ILLNESS}){_END}",
    ),
    Frame("(?:近视)", "health", "近视{}", shape=r"(?P<V>[\d一二三四五六七八九百]+度)" + _END),
    Frame("在?(?:吃素|茹素)", "diet", "吃素", denied="不吃素", shape=r"(?P<V>)" + _END),
    Frame("(?:是)", "diet", "是{}", denied="不再是{}", shape=r"(?P<V>(?:素食|纯素|严格素食|蛋奶素)(?:主义)?者?)$"),
    Frame(
        "(?:戒了|戒掉了?|戒)",
        "diet",
        "戒了{}",
        shape=r"(?P<V>烟|酒|烟酒|糖|咖啡|奶茶|肉|甜食|碳水|可乐|油炸食品?)" + _END,
    ),
    Frame(
        "能吃", "diet", "", denied="不能吃{}", shape=r"(?P<V>(?!完|到|得|了|饱|亏|苦|惯)[^,，\s了]{1,10}?)" + _END
    ),
    Frame(
        "(?:能喝|喝)",
        "diet",
        "",
        denied="不喝{}",
        shape=r"(?P<V>(?:牛奶|酒|咖啡|茶|碳酸饮料|可乐|奶茶|冰的|白酒|啤酒|饮料|凉水|豆浆))" + _END,
    ),
    Frame(
        "吃",
        "diet",
        "",
        denied="不吃{}",
        shape=r"(?P<V>(?!完|到|得|了|饱|亏|苦|惯|力|消|这|那|早饭|晚饭|午饭|饭)[^,，\s了]{1,10}?)" + _END,
    ),
    Frame("(?:抽烟|吸烟)", "habits", "抽烟", denied="不抽烟", shape=r"(?P<V>)" + _END),
    Frame(
        "(?:开的是|开着?|开)", "possessions", "开{}", shape=r"(?P<V>(?:一)?(?:辆|台|部)[^,，\s了]{1,10})" + _END
    ),
    Frame(
        "(?:刚)?(?:买了|入手了|换了|提了)",
        "possessions",
        "有{}",
        shape=rf"(?P<V>(?:一)?(?:辆|台|部|套|把|架|个)[^,，\s了]{{0,8}}{_THING}[^,，\s了]{{0,4}})" + _END,
    ),
    Frame(
        "有",
        "possessions",
        "有{}",
        shape=rf"(?P<V>(?:[一两]|\d)?(?:辆|台|部|套|架|把)[^,，\s了]{{0,8}}{_THING}[^,，\s了]{{0,4}})" + _END,
    ),
    Frame(
        "(?:用的是|的手机是|用的手机是|的车是|的电脑是)",
        "possessions",
        "用{}",
        shape=r"(?P<V>(?!你|这|那)[^,，\s了]{2,12})" + _END,
    ),
    Frame(
        "(?:里)?(?:有|养了?|收养了?|领养了?|新养了)",
        "pets",
        "养{}",
        shape=rf"(?P<V>{_COUNT}(?:[\u4e00-\u9fff]{{0,4}}?){_PET}(?:(?:名字)?叫[\u4e00-\u9fffA-Za-z]{{1,6}}|[,，"
        rf"]?叫[\u4e00-\u9fffA-Za-z]{{1,6}})?)" + _END,
    ),
    Frame(
        "(?:里)?(?:有|生了)",
        "family",
        "有{}",
        shape=rf"(?P<V>{_COUNT}(?:[\u4e00-\u9fff\d]{{0,5}}?){_KIN}(?:叫[\u4e00-\u9fffA-Za-z]{{1,6}})?)" + _END,
    ),
    Frame("会(?P<verb>弹|拉|吹|打)", "hobbies", "会{verb}{}", shape=rf"(?P<V>{_INSTRUMENT}){_END}"),
    Frame(
        "(?:已经)?(?P<V>结婚|离婚|单身|订婚|未婚|分手|领证)(?:了)?",
        "marital_status",
        "{}",
        shape=r"(?:.{0,4}年)?了?$",
    ),
    Frame(
        "(?:和|跟)(?:我)?(?:女朋友|男朋友|对象|女友|男友)(?P<V>分手|结婚|订婚)",
        "marital_status",
        "{}",
        shape=r"了$",
    ),
    Frame("(?:换工作|转行)(?:了)?", "work", "", shape=r"(?P<V>)$"),
)
_ANYTHING = r"(?P<V>\S.*)"
_COMPILED = tuple(
    (re.compile(f"(?:{frame.words})(?:{_ANYTHING if frame.shape == 'V' else frame.shape})"), frame)
    for frame in _FRAMES
)
_LIKING = re.compile(
    r"^(?P<verb>喜欢|喜爱|热爱|酷爱|偏爱|讨厌|厌恶|受不了|爱吃|爱喝|爱看|爱听|爱玩|爱好|迷上了?|爱上了?|"
    r"爱)(?:的是)?(?P<V>[^,，]{1,40})$"
)
_FEAR = re.compile(
    r"^(?:很|特别|最|非常)?(?:害怕|怕)(?P<V>狗|猫|蛇|虫子?|毛毛虫|蜘蛛|老鼠|蟑螂|黑|高|水|冷|热|辣|鬼|打针|抽血|"
    r"坐飞机|坐船|血|打雷|疼|"
    r"痛|坐过山车|密集.{0,4}|社交|一个人.{0,4})$"
)
_FAVOURITE = re.compile(
    r"^我(?:最|比较|特别)(?:喜欢|爱)(?P<what>的[\u4e00-\u9fff]{1,8}?|吃的|看的[\u4e00-\u9fff]{0,4}|"
    r"听的[\u4e00-\u9fff]{0,4})是(?P<V>[^,，]{1,20})$"
)
_HOME = re.compile(
    r"^(?:我们?家)(?:现在|目前|就)?在(?P<V>[^了,，\s]{1,12}(?:[省市区县镇乡村路街州岛]|街道|附近))(?:那边|这边)?$"
)
_DISTASTE = re.compile(r"^(?:看腻|听腻|吃腻|玩腻|看不惯|吃不惯|喝不惯|听不惯)(?:了)?(?P<V>[^,，了]{1,15})")
_SUBJECT = re.compile(rf"^{_SELF}(?P<mid>{_ADVERBS}*)(?P<no>{_NEGATION})?(?P<mid2>{_ADVERBS}*)(?P<rest>\S.*)$")
_OF_KIN = re.compile(rf"^(?:我们?的?家?的?|咱)(?P<who>{_KIN})(?:的)?(?P<mid>{_ADVERBS}*)(?P<rest>.+)$")
_OF_PET = re.compile(
    rf"^(?:我们?的?家?的?|咱家)(?P<who>{_PET})(?P<rest>(?:的?名字)?(?:叫|是)(?P<V>[\u4e00-\u9fffA-Za-z]{{1,6}}))$"
)
_KIN_SAYS = (
    (r"(?:的?名字)?(?:叫|名叫)(?P<V>[\u4e00-\u9fffA-Za-z]{1,8})$", "{who}叫{}"),
    (rf"(?:快|刚)?(?:满)?(?P<V>{_DIGITS}(?:岁半?|个月))(?:了|大)*$", "{who}{}"),
    (r"(?:是|当)(?:一名|一位|一个|名|个)?(?P<V>" + _JOB + r")$", "{who}是{}"),
    (r"在(?P<V>[^,，\s]{2,15}?(?:工作|上班|当\S{2,6}|读书|上学|读研|留学|念书))(?:了|的|呢)*$", "{who}在{}"),
    (r"住在?(?P<V>[^了,，\s]{2,12}?)(?:了|的)*$", "{who}住在{}"),
    (
        r"(?:在)?(?:上|读|念)(?P<V>幼儿园(?:[大中小]班)?|[一二三四五六]年级|初[一二三]|高[一二三]|大[一二三四]|"
        r"小学|初中|高中)(?:了|的)*$",
        "{who}上{}",
    ),
    (r"对(?P<V>[^,，\s不]{1,15}?)(?:都|有点|严重|也|很)*过敏$", "{who}对{}过敏"),
    (r"生日(?:是|在)(?P<V>.*[\d一二三四五六七八九十].*)$", "{who}生日是{}"),
    (rf"(?:有|得了|患有|查出了?)(?P<V>{_ILLNESS})(?:了)?$", "{who}有{}"),
    (r"属(?P<V>[鼠牛虎兔龙蛇马羊猴鸡狗猪])的?$", "{who}属{}"),
    (r"姓(?P<V>[\u4e00-\u9fff]{1,2})$", "{who}姓{}"),
    (r"(?P<V>怀孕|退休)(?:.{0,4})了$", "{who}{}了"),
)
_CALL_ME = re.compile(
    rf"^(?:请|你|您|可以|以后|大家|朋友们?|同事们?|同学们?|家里人|都|就|平时|一般|习惯|直接)*(?:叫|喊|"
    rf"称呼)我(?!的|们|起床|去|来|帮|吃|一声|做|怎么|什么|给|不|别|回|过|出|写)(?:为|做)?{_NAME}"
)
_WISH = re.compile(
    r"^(?:请|你|您|麻烦|那|希望你|我希望你|我想让你|能不能|可以)*(?P<when>以后|从现在起|从现在开始|今后|"
    r"从今天起|从今以后|往后|每次|一律|始终|永远|之后)(?:请|你|您|都|就|麻烦|能不能|可以|的?(?:时候|话))*"
    r"(?P<V>(?:都|就|要|请)?(?:不要再?|别再?|不用再?|不准|只)?(?:用|叫|称呼|喊|回答|回复|回我|跟我|和我|对我|"
    r"给我|说话|说|写|讲|解释|翻译|提供|举例|简短|简洁|保持|使用|先|直接|尽量|加|带|列|附|按|把|引用|讨论|"
    r"聊天).{0,40})$"
)
_STOP = re.compile(
    r"^(?:请|你|您|麻烦)*(?P<V>(?:别再?|不要再?|不用再?)(?:用|加|叫我|称呼我|说|写|给我|跟我|道歉|重复|带|列|"
    r"发).{1,20}(?:了|啦))$"
)
_TO_THE_ASSISTANT = re.compile(
    r"回答|回复|回我|答复|说话|叫我|称呼我|喊我|中文|英文|英语|法语|日语|德语|粤语|文言文|简短|简洁|简单|详细|"
    r"表情|emoji|单位|公制|摄氏|例子|举例|列表|"
    r"要点|格式|表格|口语|正式|语气|敬语|您|你|标题|步骤|来源|出处|代码|注释|术语|字以内|一句话|道歉|客气|废话|"
    r"啰嗦|markdown|编号|价格|人民币|跟我|给我",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"^(?:我们?|咱们?)(?:已经|最后|终于|最终|现在|刚刚?|还是|商量后|一致|想好了)*决定(?:了|要)?(?!不了|"
    r"权)(?P<V>\S.*?)(?:了|啦|吧)*$"
)
_INTENDS = r"(?:打算|准备|计划|要|将|会|想|定了|订了|约了|得|还要|就要)"
_PLAN = re.compile(
    rf"^{_SELF}(?P<V>{_INTENDS}?(?:在)?{_FUTURE}(?:的)?(?:早上|上午|中午|下午|晚上|傍晚)?"
    r"(?![\d一二三四五六七八九十点日号半]*$)[^,，]{2,30})$"
)
_INTENDED = re.compile(rf"(?:{_FUTURE}(?:早上|上午|中午|下午|晚上|傍晚)?)?{_INTENDS}")
_TIME_FIRST = re.compile(rf"^(?P<time>{_FUTURE}[^,，我要得]{{0,8}})(?P<me>我们?)(?P<rest>{_INTENDS}.+)$")
_DROPPED = re.compile(
    rf"^{_SELF}.{{0,6}}?(?:不打算|不准备|不想|不)(?:再|去)?(?P<V>(?!再|是|会|能|知|用|要)[^,，不没]{{2,12}}?)了$"
)
"""Plans that were dropped."""
_PLAN_LATE = re.compile(rf"^{_SELF}(?P<V>(?:打算|准备|计划)(?=.*{_FUTURE})[^,，]{{3,30}})$")
_NO_PLAN = re.compile(
    r"想(?:问|知道|请|让你|查)|天气|过得|做什么|有空|没空|没事|再说|再问|放假吗|可以吗|行吗|给你|告诉你|刚|已经|"
    r"了解|过去|见$|完成了|再聊|没|的$"
)
_SOMEBODY = re.compile(r"^(?:你|您|他|她|它|大家|朋友|同学|这|那|人家|别人|老师|医生|天气|今天天气|公司|学校)")


def facts_in_chinese(clauses: list[Clause]) -> list[Fact]:
    """Return what clauses state about the speaker, in order."""
    found: list[Fact] = []
    of_myself = False
    for clause in clauses:
        text = _SPACE.sub("", clause.text.strip(_MARKS))
        speaks_of_me = text.startswith(_ME)
        if not speaks_of_me and _SOMEBODY.match(text):
            of_myself = False
        named = _NAMED.fullmatch(text)
        if named and found and found[-1].field in ("pets", "family"):
            found[-1] = Fact(found[-1].field, f"{found[-1].text}叫{named['V']}")
            continue
        text = _TIME_FIRST.sub(r"\g<me>\g<time>\g<rest>", text)
        speaks_of_me = text.startswith(_ME)
        # The subject is named once, but a name needs its subject.
        omitted = of_myself and not speaks_of_me and not named
        found += _facts(f"我{text}" if omitted else text, text)
        if speaks_of_me:
            of_myself = re.match(rf"{_SELF}(?!(?:自己)?的|{_KIN})(?!.*[他她它])", text) is not None
    return found


def _facts(text: str, own: str) -> Iterator[Fact]:
    called = _CALL_ME.match(own)
    if called and not _VAGUE.match(called["V"]):
        yield Fact("preferred_name", called["V"].strip(_MARKS))
        return
    wish = _WISH.match(own) or _STOP.match(own)
    if wish and _TO_THE_ASSISTANT.search(wish["V"]):
        yield Fact("wishes", _clean(wish["V"]).removeprefix("请").removeprefix("都").removeprefix("就"))
        return
    if _NOT_PLAIN.search(text) or not text.startswith(_ME):
        return
    decided = _DECIDED.match(text)
    if decided:
        yield Fact("decision", f"用户决定{decided['V'].strip(_MARKS)}。")
        return
    pet, kin = _OF_PET.match(text), _OF_KIN.match(text)
    if pet:
        yield Fact("pets", f"{pet['who']}叫{pet['V']}")
    elif kin:
        yield from _of_kin(kin)
    else:
        facts = list(_of_myself(text, subject_is_named=own.startswith(_ME)))
        yield from facts
        if not facts and (dropped := _DROPPED.match(text)):
            yield Fact("plans", dropped["V"], ended=True)


def _of_kin(found: re.Match[str]) -> Iterator[Fact]:
    if _PAST.search(found.string):
        return
    for pattern, template in _KIN_SAYS:
        said = re.match(pattern, found["rest"])
        if said:
            yield Fact("family", template.format(_clean(said["V"]), who=found["who"]))
            return


def _of_myself(text: str, *, subject_is_named: bool) -> Iterator[Fact]:
    past = _PAST.search(text) is not None
    whole = None if past else _favourite_or_plan(text)
    if whole and whole.field == "plans" and not (subject_is_named or _INTENDED.match(whole.text)):
        whole = None  # a time without a subject tells when something was, as often as what is planned
    found = _SUBJECT.match(_PAST.sub("", text))
    if whole:
        yield whole
    elif found:
        no, rest = found["no"] or "", re.sub(rf"^{_ADVERBS}+", "", found["rest"])
        fear = _FEAR.match(rest)
        liking, tired = _LIKING.match(rest), _DISTASTE.match(rest)
        if liking:
            yield from _liking(liking, f"{found['mid']}{found['mid2']}", no, past=past)
        elif fear and not past:
            yield Fact("preferences", f"{'不' if no else ''}怕{fear['V']}")
        elif tired and not no:
            yield Fact("preferences", f"不再喜欢{_clean(tired['V'])}")
        elif not no.startswith("没"):  # 没 denies an event, not a habit
            # What looks like an adverb may begin the predicate.
            yield from _by_frame((rest, f"{found['mid2']}{found['rest']}"), denied=bool(no), past=past)


def _favourite_or_plan(text: str) -> Fact | None:
    at_home = _HOME.match(text)
    if at_home:
        return Fact("home", f"住在{at_home['V']}")
    favourite = _FAVOURITE.match(text)
    if favourite:
        return Fact("preferences", f"最喜欢{favourite['what']}是{favourite['V'].strip(_MARKS)}")
    plan = _PLAN.match(text) or _PLAN_LATE.match(text)
    if plan and not _NO_PLAN.search(text) and not text.endswith("了"):
        return Fact("plans", plan["V"].strip(_MARKS))
    return None


def _by_frame(predicates: tuple[str, str], *, denied: bool, past: bool) -> Iterator[Fact]:
    for pattern, frame in _COMPILED:
        matches = (pattern.match(rest) for rest in predicates)
        said = next((match for match in matches if match), None)
        if said is None:
            continue
        groups = said.groupdict()
        no = denied or bool(groups.get("denies"))
        text = frame.past if past else frame.denied if no else frame.text
        value = _clean(said["V"])
        if frame.field == "allergies" and not past:
            parts = [part for part in re.split(r"[、,，]|和|跟|以及|还有|与|及", value) if part]
            yield from (Fact("allergies", part, no) for part in parts)
        elif text and not (said["V"] and (not value or len(value) > _LONGEST or _VAGUE.match(value))):
            yield Fact(frame.field, text.format(value, verb=groups.get("verb", "")))
        return


def _liking(found: re.Match[str], mid: str, no: str, *, past: bool) -> Iterator[Fact]:
    value = _clean(found["V"])
    verb = found["verb"].removesuffix("上了") + "上" * found["verb"].endswith("上了")
    if not value or len(value) > _LONGEST or _VAGUE.match(value) or (verb == "爱" and len(value) > _LONGEST_LOVE):
        return
    if verb == "爱" and not re.match(r"[吃喝看听玩打做运读旅跑睡熬喝]", value):
        return
    if past and not no:
        return
    degree = next((word for word in ("最", "更") if not no and word in mid), "")
    # 不再喜欢 and 不喜欢…了 mean the same; the shorter one is more idiomatic.
    denied = no if no in ("不太", "不怎么", "不是很") else "不" if no else ""
    yield Fact("preferences", f"{denied}{degree}{verb}{value}")


def _clean(text: str) -> str:
    """Return a value up to where the clause changes the subject, without final particles."""
    value = _ENDS.sub("", text).strip(_MARKS)
    return re.sub(r"(?<=.)(?:了|啦|呢|哦|啊|呀|吧|嘛|哈)+$", "", value).strip(_MARKS)
