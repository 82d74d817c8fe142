"""What tests share: a browser that listens for complaints."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

# A desk, and a telephone held upright.
WIDE = (1280, 900)
NARROW = (400, 800)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium, headless; without it tests of pages are skipped, but not by continuous integration."""
    chromium = shutil.which("chromium")
    if chromium is None and "CI" not in os.environ:
        pytest.skip("there is no chromium here")
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


@contextmanager
def visit(
    browser: Browser,
    address: str,
    *,
    size: tuple[int, int] = WIDE,
    scheme: Literal["light", "dark"] = "light",
    offline: bool = False,
) -> Iterator[Visit]:
    """Open `address` in a window of `size` pixels; at the end the page must not have complained."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, offline=offline
    )
    try:
        visit = Visit(context.new_page())
        visit.page.goto(address)
        yield visit
        assert visit.complaints == []
    finally:
        context.close()
