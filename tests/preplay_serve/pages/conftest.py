"""The pages on a store with something in it: the bare routers, and a real server with a real browser."""

import shutil
import threading
import time

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from preplay_serve.pages import pages_router, public_router
from tests.preplay_serve.pages.sample_store import sample_store

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def pages_app(store) -> FastAPI:
    """The pages alone, without tokens."""
    app = FastAPI(openapi_url=None)
    app.state.store = store
    app.include_router(pages_router())
    app.include_router(public_router())
    return app


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """Read by many tests, changed by none."""
    store = sample_store(tmp_path_factory.mktemp("pages"))
    yield store
    store.close()


@pytest.fixture(scope="session")
def ids(store) -> dict[str, str]:
    """Ids of the evaluations by their state; ``hostile`` is the one whose texts are."""
    newest = store.evaluations.recent()
    found = {record.status: record.id for record in newest}
    hostile = next(r.id for r in newest if "script" in r.spec.policies[0])
    return found | {"hostile": hostile}


@pytest.fixture(scope="session")
def client(store):
    return TestClient(pages_app(store))


class Running:
    """An application on a free port of this machine, in a thread of its own."""

    def __init__(self, app):
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def __exit__(self, *_error: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10)


@pytest.fixture(scope="session")
def site(store):
    """Address of the sample pages."""
    with Running(pages_app(store)) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs Debian's chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()
