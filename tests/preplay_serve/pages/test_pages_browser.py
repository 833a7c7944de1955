"""The pages in a real browser: phone and desk, light and dark, by keyboard, without scripts, and as axe sees them."""

import importlib.resources

import pytest
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.browser
PAGES = (
    "/",
    "/evaluations/{succeeded}",
    "/evaluations/{running}",
    "/evaluations/{failed}",
    "/decisions",
    "/decisions/de_0058",
    "/models",
    "/datasets",
    "/login?failed=1",
)
HOSTILE = (
    "/",
    "/evaluations/{hostile}",
    "/evaluations/{failed}",
    "/decisions",
    "/decisions/de_0059",
    "/models",
)


def visit(browser, address, width=1600, scheme="light", scripts=True):
    """Open an address as a screen of this width and colour scheme shows it."""
    command = browser.execute_cdp_cmd
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    command("Emulation.setDeviceMetricsOverride", metrics)
    command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    command("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    browser.get(address)


def open_all(browser):
    """Unfold everything that folds."""
    browser.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")


def errors(browser):
    """What the browser complained about, recommendations aside; a bare router has no events to stream."""
    entries = [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    return [entry for entry in entries if "/events" not in entry["message"]]


def serious(browser):
    """Findings of axe that are serious or critical, shortly."""
    axe = importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations))"
    )
    return [
        (rule["id"], rule["nodes"][0]["html"][:200])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    ("width", "scheme"), [(380, "light"), (380, "dark"), (1600, "light"), (1600, "dark")]
)
@pytest.mark.parametrize("path", PAGES)
def test_fits_the_screen_without_errors(browser, site, ids, path, width, scheme):
    visit(browser, site + path.format(**ids), width, scheme)
    open_all(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    assert errors(browser) == []
    dark = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(20, 24, 27)") == (scheme == "dark")


REPORT = "/evaluations/{succeeded}"
LOOKED_AT = [(path, 1600, "light") for path in PAGES] + [(p, 380, "dark") for p in PAGES if p != REPORT]
"""The report is long: how it looks on a dark phone is looked at where it stands alone."""


@pytest.mark.parametrize(("path", "width", "scheme"), LOOKED_AT)
def test_axe_has_no_serious_finding(browser, site, ids, path, width, scheme):
    visit(browser, site + path.format(**ids), width, scheme)
    assert serious(browser) == []


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_texts_neither_run_nor_overflow(browser, site, ids, path):
    visit(browser, site + path.format(**ids), 380)
    open_all(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth") == 380
    assert errors(browser) == []  # an alert would have stopped the commands above
    assert browser.find_elements(By.TAG_NAME, "img") == []


def comes(browser, count):
    """Wait for the page of the decision log that says so; keys only start a navigation."""
    passing = (StaleElementReferenceException, NoSuchElementException)
    wait = WebDriverWait(browser, 20, ignored_exceptions=passing)
    wait.until(lambda b: b.find_element(By.CSS_SELECTOR, "main > p").text == count)


def focused(browser):
    return browser.switch_to.active_element


def test_skip_link_and_navigation_by_keyboard(browser, site):
    visit(browser, site + "/")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert focused(browser).text == "Skip to the content"
    assert focused(browser).value_of_css_property("outline-style") == "solid"
    focused(browser).send_keys(Keys.ENTER)
    assert focused(browser).get_attribute("id") == "main"
    visit(browser, site + "/")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    assert focused(browser).text == "Decisions"
    focused(browser).send_keys(Keys.ENTER)
    comes(browser, "60 decisions, page 1 of 3")
    assert browser.current_url == f"{site}/decisions"
    assert browser.find_element(By.CSS_SELECTOR, "[aria-current=page]").text == "Decisions"


@pytest.mark.parametrize("scripts", [True, False])
def test_decision_log_by_keyboard(browser, site, scripts):
    visit(browser, site + "/decisions", 380, scripts=scripts)
    text = browser.find_element(By.NAME, "text")
    text.send_keys("customer 4", Keys.TAB)
    assert focused(browser).get_attribute("name") == "model"
    focused(browser).send_keys("q")  # to "quick"
    browser.find_element(By.CSS_SELECTOR, ".filters button").send_keys(Keys.ENTER)
    comes(browser, "6 decisions")  # 4, 40, 42, 44, 46 and 48
    assert "text=customer+4&model=quick&" in browser.current_url
    candidates = browser.find_element(By.CSS_SELECTOR, ".list summary")
    candidates.send_keys(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, ".candidates .picked").is_displayed()
    browser.find_element(By.LINK_TEXT, "Clear").send_keys(Keys.ENTER)
    comes(browser, "60 decisions, page 1 of 3")
    browser.find_element(By.LINK_TEXT, "Older").send_keys(Keys.ENTER)
    comes(browser, "60 decisions, page 2 of 3")


def test_viewer_of_imagined_sessions(browser, site, ids):
    address = f"{site}/evaluations/{ids['succeeded']}"
    visit(browser, address)
    shown = [p for p in browser.find_elements(By.CSS_SELECTOR, ".pair") if p.is_displayed()]
    assert [p.find_element(By.TAG_NAME, "h3").text for p in shown] == ["empathetic, session 1"]
    browser.find_element(By.ID, "pick-policy").send_keys(Keys.ARROW_DOWN)
    (pair,) = [p for p in browser.find_elements(By.CSS_SELECTOR, ".pair") if p.is_displayed()]
    assert pair.find_element(By.TAG_NAME, "h3").text == "step-by-step, session 1"
    sides = pair.find_element(By.CSS_SELECTOR, ".turns > li").find_elements(By.CSS_SELECTOR, ".side")
    assert abs(sides[0].rect["y"] - sides[1].rect["y"]) < 1  # imagined beside logged
    assert "snap distance 0.70" in sides[0].text
    visit(browser, address, scripts=False)
    assert all(p.is_displayed() for p in browser.find_elements(By.CSS_SELECTOR, ".pair"))


def test_empty_pages_say_what_to_do(browser, tmp_path):
    from preplay_serve.store import open_store
    from tests.preplay_serve.pages.conftest import Running, pages_app

    with Running(pages_app(open_store(f"sqlite:///{tmp_path / 'empty.db'}"))) as address:
        for path, said in (
            ("/", "curl -X POST"),
            ("/decisions", "POST /v1/score"),
            ("/models", "None is published."),
            ("/datasets", "preplay embed"),
        ):
            visit(browser, address + path, 380)
            assert said in browser.find_element(By.TAG_NAME, "main").text
            assert browser.execute_script("return document.documentElement.scrollWidth") == 380
            assert serious(browser) == []
