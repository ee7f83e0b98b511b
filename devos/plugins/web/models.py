"""Input and output of ``seo.website.scan``."""

from __future__ import annotations

from pydantic import Field, field_validator

from devos.plugins.fields import WebUrl
from devos.plugins.web.urls import normalise
from tasks_app.sdk import ActionInput, ActionOutput


class ScanInput(ActionInput):
    """What to scan, how far, and how gently."""

    url: WebUrl = Field(description="Where to start, an http:// or https:// URL. Its host is the limit of the scan.")
    max_pages: int = Field(
        100, ge=1, le=5_000, description="Most URLs of the site that are fetched, redirects included."
    )
    max_depth: int = Field(10, ge=0, le=100, description="Most links between the start and a page.")
    max_duration_s: float = Field(
        3_000, gt=0, le=3_300, description="Seconds after which the scan ends with what it has."
    )
    delay_ms: int = Field(
        250,
        ge=0,
        le=60_000,
        description="Pause between two requests, milliseconds. A longer Crawl-delay of the site wins.",
    )
    timeout_s: float = Field(15, gt=0, le=120, description="Longest time for one URL, seconds.")
    max_page_bytes: int = Field(
        2_000_000, ge=1_000, le=20_000_000, description="Most bytes read of one page after decompression."
    )
    include_subdomains: bool = Field(False, description="Also follow links to subdomains of the host.")
    respect_robots: bool = Field(True, description="Leave out what robots.txt disallows (RFC 9309).")
    respect_nofollow: bool = Field(True, description="Do not follow links or pages marked nofollow.")
    skip_noindex: bool = Field(
        True, description="Leave pages marked noindex out of title, description and h1 findings."
    )
    use_sitemaps: bool = Field(True, description="Read the sitemaps of the site and visit what they list.")
    check_external: bool = Field(False, description="Ask other hosts whether the links to them work.")
    max_external: int = Field(100, ge=1, le=1_000, description="Most links to other hosts that are checked.")
    user_agent: str = Field(
        "DevOSBot/1.0",
        pattern=r"^[\x21-\x7e]+( [\x21-\x7e]+)*$",
        max_length=200,
        description="How the scan names itself.",
    )
    verify_tls: bool = Field(True, description="Refuse pages whose certificate cannot be verified.")

    @field_validator("url")
    @classmethod
    def _is_a_web_address(cls, value: str) -> str:
        if normalise(value) is None:
            raise ValueError("must be a full http:// or https:// URL, like https://example.org/")
        return value


class PageRow(ActionOutput):
    """One URL of the site as it was found."""

    url: str
    depth: int = Field(description="Links between the start and here.")
    status: int | None = Field(None, description="HTTP status; null when there was no answer.")
    error: str | None = Field(None, description="Code of the failure when there was no answer.")
    message: str | None = None
    redirect_to: str | None = None
    content_type: str = ""
    size_bytes: int | None = Field(None, description="Bytes of the body after decompression.")
    elapsed_ms: float = Field(0, description="Time of the whole request, milliseconds.")
    first_byte_ms: float = Field(0, description="Time until the headers had come, milliseconds.")
    truncated: bool = Field(False, description="The page is larger than max_page_bytes and was cut.")
    title: str | None = None
    titles: int = 0
    description: str | None = None
    robots: list[str] = Field(default_factory=list, description="Directives of meta robots and X-Robots-Tag.")
    canonical: str | None = None
    lang: str | None = None
    charset: str | None = None
    charset_problem: str | None = None
    h1: list[str] = Field(default_factory=list)
    h2: list[str] = Field(default_factory=list)
    h3: list[str] = Field(default_factory=list)
    words: int = 0
    images: int = 0
    images_without_alt: int = 0
    images_without_alt_urls: list[str] = Field(default_factory=list, description="The first of them.")
    links_internal: int = 0
    links_external: int = 0
    linked_from: int = Field(0, description="Links to this URL that the scan has seen.")
    in_sitemap: bool = False


class Reference(ActionOutput):
    """A link to something: the page it is on and its text."""

    page: str
    text: str


class BrokenLink(ActionOutput):
    """A link target that does not work, and where it is linked."""

    url: str
    status: int | None = None
    error: str | None = None
    external: bool = False
    via: list[str] = Field(default_factory=list, description="Redirects between the link and the failure.")
    links: int = Field(description="How many links lead here.")
    found_on: list[Reference] = Field(description="The first of those links.")


class RedirectChain(ActionOutput):
    """A redirect, hop by hop. ``loop``: it never ends."""

    url: str
    statuses: list[int]
    hops: list[str]
    final_status: int | None = None
    loop: bool = False


class DuplicateTitle(ActionOutput):
    title: str
    pages: list[str]


class Measured(ActionOutput):
    """A page with the number it is listed for (milliseconds or bytes)."""

    url: str
    value: float


class AltlessImages(ActionOutput):
    page: str
    count: int
    images: list[str]


class RobotsSummary(ActionOutput):
    state: str = Field(description="found, missing, unreachable (the whole site is off limits) or ignored.")
    status: int | None = None
    crawl_delay_s: float = 0
    blocked: int = Field(0, description="URLs left out because of robots.txt.")
    blocked_urls: list[str] = Field(default_factory=list, description="The first of them.")


class SitemapSummary(ActionOutput):
    files: list[str] = Field(default_factory=list)
    urls: int = 0
    orphans: list[str] = Field(
        default_factory=list, description="Listed in a sitemap but linked from no page that was seen."
    )
    orphans_count: int = 0
    problems: list[str] = Field(default_factory=list)


class Totals(ActionOutput):
    fetched: int = Field(description="URLs of the site that were fetched.")
    pages: int = Field(description="HTML pages that answered with 2xx.")
    by_status: dict[str, int] = Field(description="Number of URLs by status; those without an answer by error code.")
    links: int
    links_internal: int
    links_external: int
    external_checked: int
    broken_links: int
    redirects: int
    images: int
    images_without_alt: int
    noindex: int
    nofollow_skipped: int = Field(description="Links that were not followed because of nofollow.")
    bytes: int
    duration_s: float


class ScanReport(ActionOutput):
    """The report of a scan. ``cut`` says in words what was left out to keep it readable and small."""

    url: str
    complete: bool = Field(description="False when a limit left something unvisited.")
    unvisited: int = Field(description="Known URLs that were left unvisited.")
    totals: Totals
    robots: RobotsSummary
    sitemaps: SitemapSummary
    broken_links: list[BrokenLink]
    redirects: list[RedirectChain]
    duplicate_titles: list[DuplicateTitle]
    missing_titles: list[str]
    missing_descriptions: list[str]
    missing_h1: list[str]
    images_without_alt: list[AltlessImages]
    charset_problems: list[str]
    slowest: list[Measured]
    largest: list[Measured]
    warnings: list[str]
    cut: list[str]
    pages: list[PageRow]
