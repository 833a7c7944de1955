"""What stands on the pages, what does not, and which headers go with it."""

import json

import pytest

from preplay.report import EvaluationReport
from preplay_serve.pages._decisions import read_filters, score_width
from preplay_serve.pages._login import local_path
from preplay_serve.pages._render import duration, listed
from preplay_serve.store import open_store
from tests.preplay_serve.pages.conftest import pages_app
from tests.preplay_serve.pages.sample_store import decision, evaluate
from tests.report.sample_report import HOSTILE, full_report

PATHS = ("/", "/decisions", "/models", "/datasets", "/login", "/decisions/de_0059")


def text(answer) -> str:
    """The page with runs of white space as one blank."""
    return " ".join(answer.text.split())


@pytest.mark.parametrize("path", PATHS)
def test_every_page_forbids_all_but_its_own_files(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert " style=" not in answer.text
    assert "<style" not in answer.text
    assert not [tag for tag in answer.text.split("<script")[1:] if "src=" not in tag.split(">")[0]]


@pytest.mark.parametrize("path", ["/", "/decisions", "/models", "/decisions/de_0059", "hostile", "failed"])
def test_hostile_texts_stay_text(client, ids, path):
    html = client.get(f"/evaluations/{ids[path]}" if path in ids else path).text
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in html
    assert "1337" not in html


def test_list_says_what_was_found_and_how_far_the_rest_is(client, ids):
    page = text(client.get("/"))
    assert f'href="/evaluations/{ids["succeeded"]}">env:empathetic, env:step-by-step and 2 others</a>' in page
    assert "“empathetic” comes out highest of the 6 policies that can be judged: 0.56 a session" in page
    assert "imagining: 14 of 32" in page
    assert "The log-probabilities of 3 turns are above 0" in page


def test_list_by_status(client, ids):
    page = client.get("/?status=failed").text
    assert ids["failed"] in page
    assert ids["succeeded"] not in page
    assert ids["succeeded"] in client.get("/?status=nonsense").text


def test_list_turns_pages(tmp_path):
    from fastapi.testclient import TestClient

    store = open_store(f"sqlite:///{tmp_path / 'many.db'}")
    made = [evaluate(store, f"env:p{number}") for number in range(23)]
    client = TestClient(pages_app(store))
    first = client.get("/").text
    assert [name in first for name in (made[22], made[3], made[2])] == [True, True, False]
    older = first.split('href="/?before=')[1].split('"')[0]
    second = client.get(f"/?before={older}").text
    assert [name in second for name in (made[3], made[2], made[0])] == [False, True, True]
    assert "Newest" in second
    assert "Older" not in second


def test_detail_is_the_report(client, ids):
    page = text(client.get(f"/evaluations/{ids['succeeded']}"))
    for id in ("policies", "differences", "estimators", "on-policy", "weights", "drift", "sessions", "model"):
        assert f'<section id="{id}"' in page
    assert "Corrected for all 15 pairs, 14 of them differ clearly." in page
    assert "snap distance 0.70" in page
    assert "Collect about 80 sessions in which it greets customers in French." in page


def test_partial_estimates_of_a_running_one(client, ids):
    page = text(client.get(f"/evaluations/{ids['running']}"))
    assert "imagining: 14 of 32" in page
    # 0.52 -+ 0.08
    assert "<b>0.52</b> <span>0.44 to 0.60</span>" in page
    assert "No verdict yet" in page
    assert '<meta http-equiv="refresh" content="10">' in page


@pytest.mark.parametrize(
    ("state", "said"), [("failed", "It failed"), ("cancelled", "before it had a result")]
)
def test_ends_without_a_result(client, ids, state, said):
    page = client.get(f"/evaluations/{ids[state]}").text
    assert said in page
    assert "live.js" not in page


def test_downloads(client, ids):
    page = client.get(f"/evaluations/{ids['succeeded']}/report.html")
    assert page.headers["content-disposition"] == f'attachment; filename="preplay-{ids["succeeded"]}.html"'
    assert page.text.startswith("<!doctype html>")
    assert "/static/" not in page.text
    result = client.get(f"/evaluations/{ids['succeeded']}/result.json")
    assert EvaluationReport.model_validate(json.loads(result.text)) == full_report()


@pytest.mark.parametrize(
    "path",
    ["/evaluations/ev_x", "/evaluations/ev_x/report.html", "/decisions/..%2F..", "/evaluations/%3Cscript%3E"],
)
def test_what_is_not_there(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "<script>" not in answer.text


def test_a_result_of_another_version_is_offered_for_download(tmp_path):
    from fastapi.testclient import TestClient

    store = open_store(f"sqlite:///{tmp_path / 'old.db'}")
    old = evaluate(store, "env:a")
    store.evaluations.finish(old, "runner", "succeeded", report_json='{"schema_version": "99"}')
    client = TestClient(pages_app(store))
    assert client.get("/").status_code == 200
    assert "written by another version of preplay" in client.get(f"/evaluations/{old}").text
    assert client.get(f"/evaluations/{old}/report.html").status_code == 404
    assert client.get(f"/evaluations/{old}/result.json").text == '{"schema_version": "99"}'


@pytest.mark.parametrize(
    ("query", "total", "newest"),
    [
        ("", 60, "de_0059"),
        ("model=careful", 30, "de_0059"),
        ("decision=review", 6, "de_0050"),  # 0, 10, ..., 50
        ("decision=fallback", 8, "de_0056"),  # 7, 14, ..., 56
        ("outcome=known", 2, "de_0058"),
        ("outcome=open", 58, "de_0059"),
        ("text=Customer+41", 1, "de_0041"),
        ("text=%3Cscript%3E", 1, "de_0059"),
        ("session_id=session-2", 5, "de_0014"),
        ("since=2026-05-31&until=2026-05-31", 24, "de_0035"),  # noon of the 30th is number 0
        ("decision=review&model=quick&text=customer+30", 1, "de_0030"),
    ],
)
def test_filters_of_the_decision_log(client, query, total, newest):
    page = text(client.get(f"/decisions?{query}"))
    assert f"{total} decision{'' if total == 1 else 's'}" in page
    assert page.split('href="/decisions/')[1].split('"')[0] == newest


def test_pages_of_the_decision_log(client):
    second = text(client.get("/decisions?page=2&model=&text=writes"))
    assert "59 decisions, page 2 of 3" in second
    assert 'rel="next" href="/decisions?text=writes&amp;page=3"' in second
    assert 'rel="prev" href="/decisions?text=writes&amp;page=1"' in second
    assert "page 3 of 3" in client.get("/decisions?page=9999999").text
    assert "page 1 of 3" in client.get("/decisions?page=-1").text


def test_nonsense_in_a_filter_is_named_and_left_out(client):
    answer = client.get("/decisions?since=31.5.2026&decision=maybe&outcome=%00")
    assert answer.status_code == 400
    assert "Write a day as 2026-05-31." in answer.text
    assert "Choose one of act, fallback, review." in answer.text
    assert "60 decisions" in answer.text
    assert read_filters({"until": "9999-12-31"}).errors == {"until": "Write a day as 2026-05-31."}


def test_a_decision_in_full(client):
    page = text(client.get("/decisions/de_0058"))
    assert "Succeeded, reward 0.980" in page
    assert "the best candidate is ahead by 0.27" in page
    assert "0.768" in page
    assert "blocked" in page
    assert "careful" not in page


def test_bars_run_from_the_lowest_to_the_highest_score():
    # scores 0.75, -0.12 and 0.44: (0.44 + 0.12) / 0.87 = 64.4 % of the 96 % above the least bar of 4 %
    record = decision(40)
    assert [score_width(record, s) for s in (0.75, -0.12, 0.44)] == [100.0, 4.0, 65.8]


def test_registry_shows_figures_and_earlier_versions_but_no_paths(client):
    page = text(client.get("/models"))
    assert "0f3c9a7e51d2c4b8" in page
    assert "1 other version" in page
    assert "aa11bb22cc33dd44" in page
    assert "<dt>auc</dt><dd>0.874</dd>" in page
    assert "/secret" not in page + client.get("/datasets").text
    assert "<dt>sessions</dt><dd>1\u202f000</dd>" in client.get("/datasets").text


def test_assets_are_known_by_their_content_and_nothing_else_is_served(client):
    page = client.get("/").text
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]
    answer = client.get(address)
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    assert [client.get(f"/static/{name}").status_code for name in ("x.css", "..%2F__init__.py")] == [404, 404]


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/a\nb"]
)
def test_signing_in_leads_nowhere_else(client, target):
    assert local_path(target) == "/"
    assert 'name="next" value="/"' in client.get("/login", params={"next": target}).text


def test_words():
    assert [duration(s) for s in (0.4, 59.4, 200, 7500)] == ["0 s", "59 s", "3 min 20 s", "2 h 5 min"]
    names = ["a", "b", "c", "d", "e"]
    assert [listed(names[:n]) for n in (1, 2, 3, 5)] == ["a", "a and b", "a, b and c", "a, b and 3 others"]
    assert HOSTILE in listed([HOSTILE])
