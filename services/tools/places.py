"""The time zones of well-known cities, by their names, without asking a server."""

from functools import lru_cache
from importlib import resources

_AREAS = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
_NO_CITIES = """
act acre center chatham christmas easter johnston knox midway north nsw queensland reunion south tasmania victoria
wake west yap
"""
"""Names of zones that are also other words, or not cities."""

_CHINA = """
北京 上海 天津 重庆 广州 深圳 成都 杭州 武汉 西安 南京 苏州 郑州 长沙 东莞 沈阳 青岛 合肥 佛山 宁波 昆明 福州
无锡 厦门 济南 大连 哈尔滨 温州 石家庄 泉州 南宁 长春 南昌 贵阳 金华 常州 嘉兴 惠州 太原 徐州 南通 绍兴 珠海
中山 台州 烟台 兰州 潍坊 临沂 海口 三亚 扬州 洛阳 汕头 湖州 桂林 乌鲁木齐 呼和浩特 银川 西宁 拉萨 大理 丽江 唐山
保定 秦皇岛 包头 吉林市 延边 威海 芜湖 九江 宜昌 岳阳 湘潭 株洲 湛江 柳州 北海 遵义 绵阳 宝鸡 咸阳 敦煌 喀什
beijing shanghai tianjin guangzhou shenzhen chengdu hangzhou wuhan xi'an xian nanjing suzhou qingdao xiamen
dalian kunming sanya changsha zhengzhou ningbo shenyang jinan fuzhou lhasa guilin
"""
_ABROAD = {
    "Asia/Hong_Kong": "香港",
    "Asia/Macau": "澳门",
    "Asia/Taipei": "台北, 台中, 台南, 高雄",
    "Asia/Tokyo": "东京, 大阪, 京都, 札幌, 福冈, 名古屋, 横滨, osaka, kyoto, sapporo, nagoya, yokohama, fukuoka",
    "Asia/Seoul": "首尔, 釜山, busan",
    "Asia/Singapore": "新加坡",
    "Asia/Bangkok": "曼谷, 清迈, 普吉岛, chiang mai, phuket",
    "Asia/Kuala_Lumpur": "吉隆坡",
    "Asia/Jakarta": "雅加达",
    "Asia/Ho_Chi_Minh": "胡志明市, 河内, hanoi",
    "Asia/Manila": "马尼拉",
    "Asia/Kolkata": "新德里, 孟买, 班加罗尔, new delhi, delhi, mumbai, bangalore, chennai, hyderabad",
    "Asia/Dubai": "迪拜, abu dhabi",
    "Europe/London": "伦敦, 曼彻斯特, 爱丁堡, manchester, edinburgh, birmingham, liverpool",
    "Europe/Paris": "巴黎, 里昂, 马赛, lyon, marseille",
    "Europe/Berlin": "柏林, 慕尼黑, 法兰克福, 汉堡, munich, frankfurt, hamburg, cologne, stuttgart",
    "Europe/Rome": "罗马, 米兰, 威尼斯, 佛罗伦萨, milan, venice, florence, naples",
    "Europe/Madrid": "马德里, 巴塞罗那, barcelona, seville",
    "Europe/Amsterdam": "阿姆斯特丹, rotterdam",
    "Europe/Brussels": "布鲁塞尔",
    "Europe/Zurich": "苏黎世, 日内瓦, geneva",
    "Europe/Vienna": "维也纳",
    "Europe/Prague": "布拉格",
    "Europe/Stockholm": "斯德哥尔摩",
    "Europe/Copenhagen": "哥本哈根",
    "Europe/Helsinki": "赫尔辛基",
    "Europe/Lisbon": "里斯本, porto",
    "Europe/Athens": "雅典",
    "Europe/Istanbul": "伊斯坦布尔",
    "Europe/Moscow": "莫斯科",
    "Africa/Cairo": "开罗",
    "America/New_York": "纽约, 华盛顿, 波士顿, 迈阿密, 费城, 亚特兰大, "
    "new york city, nyc, boston, miami, philadelphia, atlanta",
    "America/Chicago": "芝加哥, 休斯顿, 达拉斯, houston, dallas, austin",
    "America/Los_Angeles": "洛杉矶, 旧金山, 西雅图, 拉斯维加斯, "
    "圣地亚哥, san francisco, seattle, las vegas, san diego",
    "America/Toronto": "多伦多, 渥太华, ottawa",
    "America/Vancouver": "温哥华",
    "America/Mexico_City": "墨西哥城",
    "America/Sao_Paulo": "圣保罗, 里约热内卢, rio de janeiro",
    "America/Argentina/Buenos_Aires": "布宜诺斯艾利斯",
    "Australia/Sydney": "悉尼",
    "Australia/Melbourne": "墨尔本",
    "Pacific/Auckland": "奥克兰, wellington",
}


def zone_of(place: str) -> str | None:
    """The IANA time zone of a well-known city, by its name in English or simplified Chinese."""
    name = " ".join(place.lower().split())
    return zones().get(name) or zones().get(name.removesuffix("市"))


@lru_cache(maxsize=1)
def zones() -> dict[str, str]:
    """Zones by city name: cities that give a zone its name, and the table above."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    cities = {
        zone.rsplit("/", 1)[1].replace("_", " ").lower(): zone
        for zone in sorted(listed)
        if zone.startswith(_AREAS)
    }
    found = {name: zone for name, zone in cities.items() if name not in _NO_CITIES.split()}
    found |= {name: zone for zone, names in _ABROAD.items() for name in names.split(", ")}
    return found | dict.fromkeys(_CHINA.split(), "Asia/Shanghai")
