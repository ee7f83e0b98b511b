"""A real Chromium against a real server on the test database. What the page prints and asks for is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from playwright.sync_api import Browser, Page, sync_playwright

from tasks_app.models import Membership, Organization
from tasks_app.services import setup

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PICTURES = Path(__file__).resolve().parents[2] / "test-results"
PASSWORD = "a long enough password"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))
            if not CHROMIUM.exists():
                item.add_marker(pytest.mark.skip(reason=f"there is no {CHROMIUM}"))


@pytest.fixture(scope="session", autouse=True)
def _static_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # WhiteNoise warns when the directory for collected files is not there; a test run collects none.
    before, settings.STATIC_ROOT = settings.STATIC_ROOT, tmp_path_factory.mktemp("static")
    yield
    settings.STATIC_ROOT = before


@pytest.fixture(scope="module")
def chromium(django_db_setup: None) -> Iterator[Browser]:
    """Only as long as this module: Playwright keeps an event loop in this thread, which Django takes for async code."""
    PICTURES.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def organization(chromium: Browser, transactional_db: None, settings: Any) -> Organization:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cache.clear()
    setup.ensure_defaults()
    return Organization.objects.get(slug="default")


class Visitor:
    """Somebody at the desk. Console errors and requests to foreign hosts are collected, and must stay empty."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.complaints: list[str] = []
        page.on("console", self._printed)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", self._asked)
        page.on("response", self._answered)

    def _printed(self, message: Any) -> None:
        # A refused form answers 400: the browser notes that, and it is meant.
        if message.type in ("error", "warning") and "status of 400" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.complaints.append(f"foreign: {request.url}")

    def _answered(self, response: Any) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.status}: {response.url}")

    def go(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def login(self, user: User) -> Page:
        page = self.go("/admin/login/")
        page.fill("#id_username", user.get_username())
        page.fill("#id_password", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_url("**/admin/")
        return page

    def picture(self, name: str) -> None:
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    def overflows(self) -> bool:
        """Whether the page can be scrolled sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1"))


@pytest.fixture
def person(organization: Organization) -> Callable[..., User]:
    def make(role: str = "operator") -> User:
        user = User.objects.create_user(f"{role}-{User.objects.count()}", password=PASSWORD, is_staff=True)
        Membership.objects.create(organization=organization, user=user, role=role)
        return user

    return make


@pytest.fixture
def visit(chromium: Browser, live_server: Any, organization: Organization) -> Iterator[Callable[..., Visitor]]:
    """``visit(width, height, dark)``: a fresh browser window."""
    opened: list[tuple[Any, Visitor]] = []

    def make(width: int = 1280, height: int = 860, *, dark: bool = False) -> Visitor:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", locale="en-US"
        )
        context.set_default_timeout(20_000)
        visitor = Visitor(context.new_page(), live_server.url)
        opened.append((context, visitor))
        return visitor

    yield make
    complaints = [complaint for _, visitor in opened for complaint in visitor.complaints]
    for context, _ in opened:
        context.close()
    assert complaints == []
