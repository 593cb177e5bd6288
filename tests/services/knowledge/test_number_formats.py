"""Values of cells in their number formats."""

from datetime import datetime, timedelta

import pytest

from services.knowledge.number_formats import as_shown

DAY = datetime(2025, 12, 29, 20, 5, 6)
SHOWN: list[tuple[object, str, str]] = [
    (0.15, "0%", "15%"),
    (-0.123, "0.0%", "-12.3%"),
    (571, "0000", "0571"),
    (1234567, '#,##0,"K"', "1,235K"),
    (123450, '0!.0,"万"', "12.3万"),
    (-1234.5, "¥#,##0.00;[Red]-¥#,##0.00", "-¥1,234.50"),
    (-5, "#,##0_);(#,##0)", "(5)"),
    (0, '_ * #,##0.00_ ;_ * -#,##0.00_ ;_ * "-"??_ ;_ @_ ', "-"),
    (1234.5, "[$€-2] #,##0.00", "€ 1,234.50"),
    (13812345678, "000-0000-0000", "138-1234-5678"),
    (12345, "0.00E+00", "1.23E+04"),
    (3.25, "# ??/??", "3 1/4"),
    (150, '[>=100]"大"0;"小"0', "大150"),
    (50, '[>=100]"大"0;"小"0', "小50"),
    (0.1 + 0.2, "General", "0.3"),
    (5, 'General"kg"', "5kg"),
    ("王", '@"先生"', "王先生"),
    (timedelta(hours=27, minutes=29, seconds=59.997), "[h]:mm", "27:30"),
    (DAY, 'yyyy"年"m"月"d"日"', "2025年12月29日"),
    (DAY, '[$-411]ggge"年"m"月"d"日";@', "令和7年12月29日"),
    (datetime(1926, 12, 24), '[$-411]ggge"年"', "1926年"),
    (DAY, '[$-804]gge"年"', "2025年"),
    (DAY, "mm-dd-yy", "2025-12-29"),
    (DAY, "m/d/yy h:mm", "2025-12-29 20:05"),
    (DAY, "mmm-yy", "Dec-25"),
    (DAY, "h:mm AM/PM", "8:05 PM"),
    (DAY, "mm:ss", "05:06"),
    (DAY, "aaaa", "星期一"),
    (DAY, "[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", "Monday, December 29, 2025"),
    (True, "General", "TRUE"),
]


@pytest.mark.parametrize(("value", "code", "shown"), SHOWN)
def test_a_cell_is_read_as_its_format_shows_it(value: object, code: str, shown: str) -> None:
    assert as_shown(value, code) == shown
