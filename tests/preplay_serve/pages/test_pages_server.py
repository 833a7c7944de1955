"""The pages behind the real routes: signing in and out, who may see them, live progress, and cancelling."""

import asyncio

import httpx
import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from preplay_serve._config import ServerConfig
from preplay_serve._forms import form_key
from preplay_serve.api import Service, create_app
from preplay_serve.store import Progress
from tests.preplay_serve.pages.conftest import Running
from tests.preplay_serve.pages.sample_store import evaluate, sample_store
from tests.report.sample_report import full_report


async def undecided(_item):
    """The pages never ask for a decision."""
    raise asyncio.CancelledError


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Address, store and two tokens of a server that wants tokens."""
    folder = tmp_path_factory.mktemp("server")
    store = sample_store(folder)
    tokens = {"all": store.tokens.create("ana", frozenset({"read", "evaluate"}))}
    tokens["score"] = store.tokens.create("agent", frozenset({"score"}))
    config = ServerConfig(models=str(folder), state=str(folder))
    with Running(create_app(Service(config, store, undecided))) as address:
        yield address, store, tokens
    store.close()


PATHS = ("/", "/evaluations/ev_x", "/evaluations/ev_x/report.html", "/decisions", "/models", "/datasets")


@pytest.mark.parametrize("path", PATHS)
def test_strangers_are_sent_to_sign_in(served, path):
    address, _, tokens = served
    answer = httpx.get(address + path)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")
    wrong = httpx.get(address + path, cookies={"preplay_token": "wrong"})
    assert wrong.status_code == 303
    assert httpx.get(address + path, cookies={"preplay_token": tokens["score"]}).status_code == 403


def test_sign_in_page_and_its_files_are_open(served):
    address, _, _ = served
    assert httpx.get(address + "/login").status_code == 200
    answer = httpx.get(address + "/static/pages.css")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/css; charset=utf-8")


def test_pages_keep_their_own_stricter_policy(served):
    address, _, tokens = served
    answer = httpx.get(address + "/", headers={"Authorization": f"Bearer {tokens['all']}"})
    assert answer.status_code == 200
    assert "unsafe" not in answer.headers["content-security-policy"]


def waiting(browser):
    """Waits through reloads, in which an element may vanish between being found and being read: chromedriver calls it
    stale, or says that the node does not belong to the document."""
    return WebDriverWait(browser, 20, ignored_exceptions=[WebDriverException])


def sign_in(browser, address, token):
    browser.find_element(By.NAME, "token").send_keys(token, Keys.ENTER)
    waiting(browser).until(lambda b: "/login?next" not in b.current_url)


def fresh(browser, address, path, scripts=True):
    """Open a path with no cookie from an earlier test."""
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    browser.get(address + path)


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_signing_in_and_out_by_keyboard(browser, served, scripts):
    address, _, tokens = served
    fresh(browser, address, "/decisions", scripts)
    waiting(browser).until(lambda b: b.switch_to.active_element.get_attribute("name") == "token")
    sign_in(browser, address, "wrong")
    assert "not known" in browser.find_element(By.ID, "failed").text
    browser.get(address + "/decisions")
    sign_in(browser, address, tokens["all"])
    assert browser.current_url == address + "/decisions"
    cookie = browser.get_cookie("preplay_token")
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    browser.find_element(By.CSS_SELECTOR, ".site button").send_keys(Keys.ENTER)
    waiting(browser).until(lambda b: b.current_url.endswith("/login"))
    browser.get(address + "/decisions")
    assert "/login?next" in browser.current_url


@pytest.mark.browser
def test_progress_moves_and_the_result_appears_by_itself(browser, served):
    address, store, tokens = served
    running = evaluate(store, "env:live")
    fresh(browser, address, f"/evaluations/{running}")
    sign_in(browser, address, tokens["all"])
    assert "starting" in browser.find_element(By.ID, "live").text
    store.evaluations.advance(running, "runner", Progress(stage="imagining", done=3, total=8), [])
    shown = waiting(browser).until
    shown(lambda b: "imagining: 3 of 8" in b.find_element(By.ID, "live").text)
    store.evaluations.finish(running, "runner", "succeeded", report_json=full_report().model_dump_json())
    shown(lambda b: b.find_elements(By.ID, "policies"))
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_cancelling(browser, served, scripts):
    address, store, tokens = served
    running = evaluate(store, "env:too-long")
    fresh(browser, address, f"/evaluations/{running}", scripts)
    sign_in(browser, address, tokens["all"])
    browser.find_element(By.CSS_SELECTOR, "#cancel button").send_keys(Keys.ENTER)
    if scripts:
        browser.switch_to.alert.accept()
    waiting(browser).until(lambda b: b.find_element(By.CSS_SELECTOR, ".badge").text == "cancelling")
    assert store.evaluations.get(running).status == "cancelling"


def test_the_form_to_cancel_is_of_one_session_and_needs_the_scope(served):
    address, store, tokens = served
    running = evaluate(store, "env:still-needed")
    reader = store.tokens.create("reader", frozenset({"read"}))
    target = f"{address}/evaluations/{running}/cancel"

    def send(token: str, key: str) -> httpx.Response:
        return httpx.post(target, data={"key": key}, cookies={"preplay_token": token})

    assert send(tokens["all"], "").status_code == 403
    assert send(tokens["all"], form_key(reader, running)).status_code == 403
    assert send(tokens["all"], form_key(tokens["all"], "ev_0")).status_code == 403
    refused = send(reader, form_key(reader, running))
    assert (refused.status_code, refused.headers["location"]) == (303, f"/evaluations/{running}?refused=1")
    page = httpx.get(address + refused.headers["location"], cookies={"preplay_token": reader})
    assert "needs a token that may evaluate" in page.text
    assert store.evaluations.get(running).status == "running"
