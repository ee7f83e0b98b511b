"""The action ``seo.website.scan``."""

from __future__ import annotations

from devos.plugins.web.crawl import Crawl
from devos.plugins.web.models import ScanInput, ScanReport
from devos.plugins.web.report import ReportWriter
from devos.plugins.web.urls import origin
from tasks_app.sdk import Context, Plugin, RetryPolicy, action, outbound


@action(
    "seo.website.scan",
    version=1,
    title="Scan a website",
    description=(
        "Visits the pages of one site as a polite crawler and reports what is broken or missing: status, redirects, "
        "broken links with the page they are on, titles, descriptions, headings, canonicals, images without alt, "
        "robots.txt and sitemaps, size and time. Can be paused at any page."
    ),
    permission="seo.scan",
    timeout_s=3_600,
    retry=RetryPolicy(max_attempts=4, strategy="exponential", delay_ms=2_000, max_delay_ms=60_000, jitter=True),
    supports_pause=True,
    modes={"async", "stream"},
    agent_tool=True,
)
def scan(ctx: Context, input: ScanInput) -> ScanReport:
    """Crawl the site of ``input.url`` and report. Fails only when the start itself cannot be reached."""
    with outbound.Client(interrupted=lambda: ctx.cancelled, user_agent=input.user_agent) as client:
        crawl = Crawl(ctx, input, client)
        state = crawl.run()
    robots = crawl.robots.get(origin(crawl.start))
    crawl_delay_s = robots.crawl_delay_s(input.user_agent) if robots else 0.0
    report = ReportWriter(input, state, robots, crawl_delay_s).write()
    ctx.log.info(
        "scan finished",
        fetched=report.totals.fetched,
        broken_links=report.totals.broken_links,
        blocked=report.robots.blocked,
    )
    return report


plugin = Plugin(name="web", version="1", title="Websites", actions=[scan])
