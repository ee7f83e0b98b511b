"""The loop of a scan: take a URL from the frontier, wait politely, fetch, read, put what it links to at the end."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from devos.plugins.waiting import wait_until
from devos.plugins.web.fetch import Fetched, Fetcher
from devos.plugins.web.models import ScanInput
from devos.plugins.web.page import Page, parse_page
from devos.plugins.web.robots import Robots, fetch_robots
from devos.plugins.web.sitemap import collect
from devos.plugins.web.state import ScanState
from devos.plugins.web.urls import Site, normalise, origin
from tasks_app.sdk import Context, outbound

# A site that asks for more is answered with this, and a warning: a scan has to end.
MAX_CRAWL_DELAY_S = 60.0
MAX_REDIRECT_HOPS = 10
_MAX_RETRY_AFTER_S = 30.0
_TRIES_WHEN_BUSY = 3
_MAX_SITEMAP_URLS = 20_000


class Crawl:
    """One scan of one site. `run` may be left at any page by a pause and go on from its checkpoint."""

    def __init__(self, ctx: Context, wanted: ScanInput, client: outbound.Client) -> None:
        self.ctx = ctx
        self.wanted = wanted
        self.client = client
        self.start = normalise(wanted.url) or wanted.url
        self.site = Site(self.start, wanted.include_subdomains)
        self.state = ScanState.resume(ctx.checkpoint)
        for host in self.state.hosts:
            self.site.adopt(host)
        self.fetcher = Fetcher(client, wanted.timeout_s, wanted.max_page_bytes, wanted.verify_tls)
        self.robots: dict[str, Robots] = {}
        self._next_at: dict[str, float] = {}
        self._started = time.monotonic()

    def run(self) -> ScanState:
        """Visit the site until nothing is left or a limit is met."""
        try:
            self._visit_site()
            if self.wanted.check_external:
                self._check_external()
        except outbound.OutboundInterrupted:
            # The request was cut short because of a cancel; this raises it.
            self.ctx.raise_if_cancelled()
            raise
        self.state.elapsed_s = self.elapsed_s()
        return self.state

    def elapsed_s(self) -> float:
        """Seconds of work, earlier sittings included."""
        return self.state.elapsed_s + time.monotonic() - self._started

    def robots_of(self, url: str) -> Robots:
        """The robots rules that speak for ``url``, fetched when first asked for."""
        place = origin(url)
        if place not in self.robots:
            if not self.wanted.respect_robots and not self.wanted.use_sitemaps:
                self.robots[place] = Robots("ignored")
            else:
                self._wait_turn(url)
                self.robots[place] = fetch_robots(
                    self.client, url, timeout_s=self.wanted.timeout_s, verify=self.wanted.verify_tls
                )
                self.ctx.log.info("robots.txt read", url=place, state=self.robots[place].state)
        return self.robots[place]

    # -- the site ---------------------------------------------------------------------------------------------------

    def _visit_site(self) -> None:
        state, wanted = self.state, self.wanted
        state.add(self.start, 0)
        if wanted.use_sitemaps and state.sitemap is None:
            self._read_sitemaps()
        while len(state.rows) < wanted.max_pages and (state.waiting or self._take_from_sitemap()):
            self._between_requests()
            if self.elapsed_s() > wanted.max_duration_s:
                state.warn(f"stopped after {wanted.max_duration_s:g} s (max_duration_s)")
                break
            self._report_progress()
            url, depth, hops = state.waiting[0]
            if not self._may_fetch(url):
                self._leave_out(url)
                continue
            # The entry stays in the frontier until its page is recorded, so a pause while waiting loses nothing.
            self._wait_turn(url)
            fetched = self.fetcher.page(url)
            state.waiting.popleft()
            if self._come_back_later(fetched, depth, hops):
                continue
            self._record(fetched, depth, hops)
        self._report_progress()

    def _leave_out(self, url: str) -> None:
        self.state.waiting.popleft()
        self.state.blocked[url] = None
        if url == self.start:
            self.state.warn("robots.txt does not let this scan fetch its start (respect_robots: false overrides)")

    def _read_sitemaps(self) -> None:
        robots = self.robots_of(self.start)
        starts = [*robots.sitemaps(self.start), origin(self.start) + "/sitemap.xml"]
        found = collect(
            self.client,
            starts,
            self.site,
            limit=_MAX_SITEMAP_URLS,
            timeout_s=self.wanted.timeout_s,
            verify=self.wanted.verify_tls,
            before_each=self._before_sitemap,
        )
        self.state.sitemap = {
            "files": found.files,
            "urls": list(found.urls),
            "problems": found.problems[:50],
            "taken": False,
        }
        if found.cut:
            self.state.warn("the sitemaps list more than is read in a scan; orphans may be missing")

    def _take_from_sitemap(self) -> bool:
        """Add what only the sitemaps know, after all that is linked: so depths count links, and orphans come last."""
        sitemap = self.state.sitemap
        if sitemap is None or sitemap["taken"] or not self.wanted.max_depth:
            return False
        sitemap["taken"] = True
        for url in sitemap["urls"]:
            self.state.add(url, 1)
        return bool(self.state.waiting)

    def _before_sitemap(self, url: str) -> bool:
        if not self._may_fetch(url):
            return False
        self._wait_turn(url)
        return True

    def _may_fetch(self, url: str) -> bool:
        if not self.wanted.respect_robots:
            return True
        robots = self.robots_of(url)
        if robots.failure is not None and not self.state.rows:
            # Not even the start's host answers: the scan failed, and whether to try again is for the runtime to say.
            raise robots.failure
        if robots.state == "unreachable":
            said = f"answered {robots.status}" if robots.status else "did not answer"
            self.state.warn(f"{origin(url)}/robots.txt {said}; nothing there may be fetched until it does (RFC 9309)")
        return robots.allows(url, self.wanted.user_agent)

    # -- waiting ----------------------------------------------------------------------------------------------------

    def _between_requests(self) -> None:
        self.ctx.raise_if_cancelled()
        self.ctx.pause_point(self.state.checkpoint(self.elapsed_s()))

    def _wait_turn(self, url: str) -> None:
        """Wait until the host of ``url`` may be asked again; cancel and pause end the wait."""
        host = urlsplit(url).netloc
        wait_until(self._next_at.get(host, 0.0), self._between_requests)
        self._next_at[host] = time.monotonic() + self._delay_s(url)

    def _delay_s(self, url: str) -> float:
        known = self.robots.get(origin(url)) if self.wanted.respect_robots else None
        asked = known.crawl_delay_s(self.wanted.user_agent) if known else 0.0
        if asked > MAX_CRAWL_DELAY_S:
            self.state.warn(f"robots.txt asks for {asked:g} s between requests; {MAX_CRAWL_DELAY_S:g} s are kept")
        return max(self.wanted.delay_ms / 1000, min(asked, MAX_CRAWL_DELAY_S))

    def _come_back_later(self, fetched: Fetched, depth: int, hops: int) -> bool:
        """Put a URL whose server is busy (429, or 503 with Retry-After) back into the frontier."""
        seconds = retry_after_s(fetched)
        tries = self.state.again.get(fetched.url, 1)
        if seconds is None or tries >= _TRIES_WHEN_BUSY:
            return False
        self.state.again[fetched.url] = tries + 1
        host = urlsplit(fetched.url).netloc
        self._next_at[host] = max(self._next_at[host], time.monotonic() + min(seconds, _MAX_RETRY_AFTER_S))
        self.state.waiting.appendleft([fetched.url, depth, hops])
        self.ctx.log.info("the site asks to slow down", url=fetched.url, status=fetched.status, wait_s=seconds)
        return True

    # -- what came back ---------------------------------------------------------------------------------------------

    def _record(self, fetched: Fetched, depth: int, hops: int) -> None:
        if fetched.failure is not None and not self.state.rows:
            raise fetched.failure
        row = {
            "url": fetched.url,
            "depth": depth,
            "status": fetched.status,
            "error": fetched.error,
            "message": fetched.message,
            "content_type": fetched.content_type[:100],
            "size_bytes": fetched.size,
            "elapsed_ms": fetched.elapsed_ms,
            "first_byte_ms": fetched.first_byte_ms,
            "truncated": fetched.truncated,
        }
        self.state.rows[fetched.url] = row
        if fetched.error or (fetched.status or 0) >= 400:
            self.ctx.log.warn("page does not work", url=fetched.url, status=fetched.status, error=fetched.error)
        if fetched.location and 300 <= (fetched.status or 0) < 400:
            self._follow_redirect(row, fetched, depth, hops)
        elif fetched.is_html:
            page = parse_page(fetched.body, fetched.url, fetched.headers, cut=fetched.truncated)
            row.update(page_columns(page))
            self._follow_links(row, page, depth)

    def _follow_redirect(self, row: dict[str, object], fetched: Fetched, depth: int, hops: int) -> None:
        target = normalise(fetched.location or "", fetched.url)
        row["redirect_to"] = target or (fetched.location or "")[:500]
        if target is None:
            return
        from_start = depth == 0
        if target not in self.site and from_start and self.site.adopt(target):
            self.state.hosts.append(target)
        if target not in self.site:
            self.state.link(target, fetched.url, "(redirect)", external=True)
            if from_start:
                self.state.warn(f"the start redirects to another host ({target}); scan that URL instead")
        elif hops < MAX_REDIRECT_HOPS:
            self.state.add(target, depth, hops + 1)
        else:
            self.state.warn(f"{fetched.url} redirects more than {MAX_REDIRECT_HOPS} times in a row")

    def _follow_links(self, row: dict[str, object], page: Page, depth: int) -> None:
        internal = external = 0
        for link in page.links:
            outside = link.url not in self.site
            external += outside
            internal += not outside
            self.state.link(link.url, str(row["url"]), link.text, external=outside)
            if outside:
                continue
            if self.wanted.respect_nofollow and (link.nofollow or page.nofollow):
                self.state.count("nofollow_skipped")
            elif depth < self.wanted.max_depth:
                self.state.add(link.url, depth + 1)
            elif link.url not in self.state.rows:
                self.state.count("too_deep")
        row.update(links_internal=internal, links_external=external)
        if page.links_cut:
            self.state.warn(f"{row['url']} has more links than are read of one page")

    # -- other hosts ------------------------------------------------------------------------------------------------

    def _check_external(self) -> None:
        outside = [url for url, entry in self.state.targets.items() if entry[1]]
        chosen = outside[: self.wanted.max_external]
        if len(outside) > len(chosen):
            self.state.warn(f"{len(outside) - len(chosen)} links to other hosts were not checked (max_external)")
        for index, url in enumerate(chosen):
            self._between_requests()
            self.ctx.progress(index, len(chosen), "external links", url)
            if url in self.state.external:
                continue
            self._wait_turn(url)
            answer = self.fetcher.link(url)
            self.state.external[url] = {"status": answer.status, "error": answer.error}
        self.ctx.progress(len(chosen), len(chosen), "external links")

    def _report_progress(self) -> None:
        done, waiting = len(self.state.rows), self.state.waiting
        total = min(self.wanted.max_pages, done + len(waiting))
        self.ctx.progress(done, total, "pages", waiting[0][0] if waiting else None)


def page_columns(page: Page) -> dict[str, object]:
    """The columns of a row that come from the page itself."""
    return {
        "title": page.title,
        "titles": page.titles,
        "description": page.description,
        "robots": sorted(page.robots)[:10],
        "canonical": page.canonical,
        "lang": page.lang,
        "charset": page.charset,
        "charset_problem": page.charset_problem,
        "h1": page.h1[:5],
        "h2": page.h2[:10],
        "h3": page.h3[:10],
        "words": page.words,
        "images": page.images,
        "images_without_alt": page.altless,
        "images_without_alt_urls": page.images_without_alt[:10],
    }


def retry_after_s(fetched: Fetched) -> float | None:
    """Seconds a busy server asks to wait; None when it is not busy. A 429 that names no time means one second."""
    if fetched.status not in {429, 503}:
        return None
    text = fetched.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:6])
    return 1.0 if fetched.status == 429 else None
