"""What tests share: a browser that listens for complaints."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

import hypothesis
import pytest
import skips
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

# A desk, and a telephone held upright.
WIDE = (1280, 900)
NARROW = (400, 800)

# No property test depends on how busy the machine is, and each draws the same examples each time, but for those of
# `make search`: --hypothesis-profile=search --hypothesis-seed=N.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", deadline=None, database=None)
hypothesis.settings.load_profile("fixed")

# Milliseconds within which a page shows what it is going to show, however busy the machine is.
SOON = 60_000
expect.set_options(timeout=SOON)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium, headless; without it tests of pages are skipped."""
    chromium = shutil.which("chromium")
    if chromium is None:
        skips.skip("program-missing", "chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page in the browser, and what it complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(f"{request.url} could not be fetched"))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


class Open(Protocol):
    """Opens an address in a window of `size` pixels; at the end of the block the page must not have complained."""

    def __call__(
        self,
        address: str,
        *,
        size: tuple[int, int] = WIDE,
        scheme: Literal["light", "dark"] = "light",
        offline: bool = False,
    ) -> AbstractContextManager[Visit]: ...


@pytest.fixture
def visit(browser: Browser) -> Open:
    """Visits pages: `with visit(path.as_uri(), size=NARROW, scheme="dark") as visited: visited.page...`."""

    @contextmanager
    def opened(
        address: str,
        *,
        size: tuple[int, int] = WIDE,
        scheme: Literal["light", "dark"] = "light",
        offline: bool = False,
    ) -> Iterator[Visit]:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, offline=offline
        )
        try:
            context.set_default_timeout(SOON)
            visited = Visit(context.new_page())
            visited.page.goto(address)
            yield visited
            assert visited.complaints == []
        finally:
            context.close()

    return opened


def pytest_configure(config: pytest.Config) -> None:
    # For the examples in the package, too, which lie beside this directory.
    config.pluginmanager.register(skips, "skips")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long-snippets", action="store_true", help="run the blocks of documents that take minutes, too")
