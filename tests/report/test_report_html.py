"""The page holds everything itself, keeps hostile texts inert and shows the right numbers."""

import json
import re
from html.parser import HTMLParser

import pytest
from sample_report import HOSTILE, full_report, hostile_report, policy, refused, report

from preplay.report import EvaluationReport, render_html


class Page(HTMLParser):
    """Start tags with their attributes, and all visible text."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self._inside = "", ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_hostile_texts_stay_text():
    page = Page(render_html(hostile_report()))
    assert [script.get("type") for script in page.named("script")] == ["application/json", None]
    assert page.named("img") == []
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert page.text.count(HOSTILE) > 15
    assert "1337" not in page.text


def test_embedded_data_is_the_result():
    html = render_html(hostile_report())
    island = html.split('id="result">')[1].split("</script>")[0]
    assert "<" not in island
    assert EvaluationReport.model_validate(json.loads(island)) == hostile_report()


def test_nothing_is_loaded_from_anywhere():
    html = render_html(full_report())
    page = Page(html)
    loading = {"src", "srcset", "data", "action", "poster", "xlink:href"}
    assert not [name for _, attributes in page.tags for name in attributes if name in loading]
    assert {tag["href"][0] for tag in page.named("a")} == {"#"}
    assert page.named("link") == []
    assert not re.search(r"https?://|@import|url\(", html)
    policy_text = page.named("meta")[1]["content"]
    assert policy_text.startswith("default-src 'none'")


def test_ids_are_unique_and_links_lead_somewhere():
    page = Page(render_html(full_report()))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {tag["href"][1:] for tag in page.named("a")} <= set(ids)
    referred = [
        attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes
    ]
    assert set(referred) <= set(ids)


def test_every_table_has_a_caption_and_scoped_heads():
    page = Page(render_html(full_report()))
    assert len(page.named("table")) == len(page.named("caption")) == 14
    assert all(head["scope"] in ("row", "col") for head in page.named("th"))


def test_withheld_number_is_nowhere():
    # the refused headline was 0.2135 before it was withheld
    html = render_html(report([refused("french-speaking"), policy("a", 0.9)]))
    assert "0.2135" not in html
    assert "withheld" in Page(html).text


def test_values_on_the_page():
    text = " ".join(Page(render_html(full_report())).text.split())
    # 0.55 + 0.01 is the headline, 0.53 the truth; pdis is 0.55 + 0.09 with error 0.139
    assert "empathetic estimate 0.56 0.50 to 0.62 truth 0.53" in text
    assert "0.56 ± 0.03 +0.03" in text
    assert "0.64 ± 0.14 +0.11" in text
    assert "The model is off by +0.17, more than chance explains." in text
    assert "mean error 4 % of the range" in text
    assert "Imagined session has ended." in text
    # the last imagined turn lies at 2.1, the radius is 1.8
    assert "unlike what the logs show: support distance 2.1, at most 1.8 is usual" in text
    assert "support distance 0.60" in text
    assert "Corrected for all 15 pairs, 14 of them differ clearly." in text
    assert "empathetic always-escalate +0.91 ± 0.02 0.85 to 0.97 0.87 to 0.95 < 0.001" in text
    # 0.8 + 0.1 * -0.36 = 0.764 and 0.8 + 0.1 * 0.55 = 0.855
    assert "explains 76 % (“always-escalate”) to 86 % of the variance" in text


def test_charts_carry_their_sentence_as_text_alternative():
    page = Page(render_html(full_report()))
    charts = [a for a in page.named("svg") if a.get("class") == "box"]
    # eight policies with four charts, of which the refused one keeps its value to itself, and the propensities
    assert len(charts) == 8 * 4 - 1 + 1
    assert all(a["role"] == "img" and len(a["aria-label"]) > 40 for a in charts)


@pytest.mark.parametrize("policies", [[], [refused("a")]])
def test_page_of_a_sparse_report(policies):
    bare = [
        p.model_copy(
            update=dict.fromkeys(("drift", "support", "weights", "returns"))
            | {"estimates": [], "sessions": []}
        )
        for p in policies
    ]
    sparse = report(
        bare, behavior=[], model=None, logged_drift=None, reward_range=None, data_card={}, configuration={},
        versions={}, commands=[],
    )  # fmt: skip
    page = Page(render_html(sparse))
    assert len(page.named("h2")) == len(policies)
    assert len(page.named("select")) == 0
