"""Documentation, alerts and dashboard name the metrics that there are."""

import json
import re
from pathlib import Path

import yaml
from prometheus_client import REGISTRY

from services.platform import metrics

ROOT = Path(__file__).parents[2]
OBSERVABILITY = ROOT / "deploy" / "observability"
ALERTS = yaml.safe_load((OBSERVABILITY / "alerts.yaml").read_text())["groups"][0]["rules"]
_NAME = re.compile(r"\b(?:anamnesis|gen_ai_client)_[a-z_]+\b")
_OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")


def known_metrics() -> dict[str, tuple[str, ...]]:
    """Labels by name, as Prometheus stores them."""
    assert metrics.TURNS
    known = {}
    for family in REGISTRY.collect():
        if family.name.startswith(("anamnesis_", "gen_ai_")):
            collector = REGISTRY._names_to_collectors[family.name]
            name = f"{family.name}_total" if family.type == "counter" else family.name
            known[name] = tuple(collector._labelnames)  # type: ignore[attr-defined]
    return known


def _metrics_in(query: str) -> set[str]:
    found = set(_NAME.findall(re.sub(r'"[^"]*"', "", query)))
    return {name.removesuffix(ending) for name in found for ending in _OF_A_HISTOGRAM if name.endswith(ending)} | {
        name for name in found if not name.endswith(_OF_A_HISTOGRAM)
    }


def test_every_metric_is_documented_with_its_labels() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)(?:\{([a-z_,]*)\})?` \| (?:counter|gauge|histogram) \|", page, re.MULTILINE)
    assert {name: tuple(labels.split(",")) if labels else () for name, labels in rows} == known_metrics()


def test_alerts_ask_for_metrics_that_there_are_and_have_a_page_each() -> None:
    known = known_metrics()
    for rule in ALERTS:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert _metrics_in(rule["expr"]) <= set(known), rule["alert"]
        for name, selector in re.findall(r"((?:anamnesis|gen_ai)_\w+)\{([^}]*)\}", rule["expr"]):
            assert set(re.findall(r"(\w+)[=!]", selector)) <= set(known[name]), rule["alert"]
        page = (ROOT / rule["annotations"]["runbook"]).read_text()
        assert rule["expr"] in page
        assert "## Look" in page
        assert "## Do" in page
        chinese = (ROOT / "docs" / "zh" / "runbook" / f"{rule['alert']}.md").read_text(encoding="utf-8")
        assert rule["expr"] in chinese
        severity = rule["labels"]["severity"]
        assert f"for {rule['for']}; severity `{severity}`" in page
        assert f"持续 {rule['for'].removesuffix('m')} 分钟；级别 `{severity}`" in chinese
    severities = [(rule["alert"], rule["labels"]["severity"]) for rule in ALERTS]
    for folder in (ROOT / "docs" / "runbook", ROOT / "docs" / "zh" / "runbook"):
        listed = re.findall(
            r"^\| \[(\w+)\]\(\1\.md\) \| (\w+) \|", (folder / "README.md").read_text(), re.MULTILINE
        )
        assert listed == severities
        assert {page.stem for page in folder.glob("*.md")} - {"README"} == {rule["alert"] for rule in ALERTS}


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    panels = json.loads((OBSERVABILITY / "dashboard.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(panels) >= 12
    assert set().union(*map(_metrics_in, queries)) <= set(known_metrics())
