"""The page in a real browser: no overflow from phone to desk, no errors, and a viewer that needs no mouse."""

import importlib.resources
import shutil

import pytest
from sample_report import full_report, hostile_report
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from preplay.report import write_report

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver"),
]


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_report(full_report(), tmp_path_factory.mktemp("report")).as_uri()


def visit(browser, page, width=1600, scheme="light", scripts=True):
    """Open the page as a screen of this width and colour scheme shows it."""
    command = browser.execute_cdp_cmd
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    command("Emulation.setDeviceMetricsOverride", metrics)
    command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    command("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    browser.get(page)


def shown_pair(browser):
    """Heading of the session on display; there must be exactly one."""
    (pair,) = [p for p in browser.find_elements(By.CSS_SELECTOR, ".pair") if p.is_displayed()]
    return pair.find_element(By.TAG_NAME, "h3").text


def luminance(browser, selector, style):
    colour = browser.find_element(By.CSS_SELECTOR, selector).value_of_css_property(style)
    channels = [float(part) / 255 for part in colour.split("(")[1].rstrip(")").split(",")[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 768, 1600])
def test_fits_the_screen_without_errors(browser, page, width, scheme):
    visit(browser, page, width, scheme)
    for details in browser.find_elements(By.CSS_SELECTOR, "details:not(.pair)"):
        browser.execute_script("arguments[0].open = true", details)
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [380, 1600])
def test_hostile_texts_neither_run_nor_overflow(browser, tmp_path, width):
    visit(browser, write_report(hostile_report(), tmp_path).as_uri(), width)
    for details in browser.find_elements(By.TAG_NAME, "details"):
        browser.execute_script("arguments[0].open = true", details)
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    assert browser.get_log("browser") == []  # an alert would have stopped the commands above


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("selector", "least"),
    [
        ("h1", 4.5),
        (".facts", 4.5),
        ("nav a", 4.5),
        (".verdict.bounds-only", 4.5),
        (".verdict.not-identified", 4.5),
    ],
)
def test_contrast(browser, page, scheme, selector, least):
    visit(browser, page, scheme=scheme)
    bright, dark = sorted(
        [luminance(browser, selector, "color"), luminance(browser, "body", "background-color")], reverse=True
    )
    assert (bright + 0.05) / (dark + 0.05) >= least
    assert (luminance(browser, "body", "background-color") < 0.1) == (scheme == "dark")


def test_viewer_by_keyboard(browser, page):
    visit(browser, page)
    assert shown_pair(browser) == "empathetic, session 1"
    policy = browser.find_element(By.ID, "pick-policy")
    policy.send_keys(Keys.ARROW_DOWN)
    assert shown_pair(browser) == "step-by-step, session 1"
    policy.send_keys(Keys.TAB)
    session = browser.switch_to.active_element
    assert session.get_attribute("id") == "pick-session"
    session.send_keys(Keys.ARROW_DOWN)
    assert shown_pair(browser) == "step-by-step, session 2"
    session.send_keys(Keys.TAB, Keys.TAB)
    assert browser.switch_to.active_element.text == "Next"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert shown_pair(browser) == "diagnose-first, session 1"
    assert browser.find_element(By.CSS_SELECTOR, ".picker output").text == "5 of 15 in all"
    browser.find_element(By.ID, "previous").send_keys(Keys.SPACE)
    assert shown_pair(browser) == "step-by-step, session 2"


def test_focus_is_visible_and_the_first_stop_skips_to_the_result(browser, page):
    visit(browser, page)
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert (skip.get_attribute("class"), skip.rect["x"] >= 0) == ("skip", True)
    assert skip.value_of_css_property("outline-style") == "solid"
    skip.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "main"


def test_axe_has_no_serious_finding(browser, page):
    visit(browser, page, 380, "dark")
    axe = importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations))"
    )
    assert [rule["id"] for rule in found if rule["impact"] in ("serious", "critical")] == []


def test_all_sessions_can_be_read_without_scripts(browser, page):
    visit(browser, page, scripts=False)
    pairs = browser.find_elements(By.CSS_SELECTOR, ".pair")
    assert [pair.is_displayed() for pair in pairs] == [True] * 15
    assert not browser.find_element(By.CSS_SELECTOR, ".picker").is_displayed()
    pairs[3].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert pairs[3].find_element(By.CSS_SELECTOR, ".turns").is_displayed()
