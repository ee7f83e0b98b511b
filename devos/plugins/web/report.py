"""From the rows of a scan to a report a person can act on, small enough to be stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from devos.plugins.web.models import (
    AltlessImages,
    BrokenLink,
    DuplicateTitle,
    Measured,
    PageRow,
    RedirectChain,
    Reference,
    RobotsSummary,
    ScanInput,
    ScanReport,
    SitemapSummary,
    Totals,
)
from devos.plugins.web.robots import Robots
from devos.plugins.web.state import ScanState
from devos.plugins.web.urls import normalise

# The platform stores outputs up to 4 MB; the rows get most of it, every list of findings a bounded share.
ROWS_BYTES_MAX = 2_500_000
LIST_MAX = 500
_TOP = 10
_MAX_HOPS = 20

Row = dict[str, Any]


class ReportWriter:
    """Writes the report of one finished scan."""

    def __init__(self, wanted: ScanInput, state: ScanState, robots: Robots | None, crawl_delay_s: float) -> None:
        self.wanted = wanted
        self.state = state
        self.robots = robots
        self.crawl_delay_s = crawl_delay_s
        self.cut: list[str] = []
        self.html = [row for row in state.rows.values() if "titles" in row]
        self.judged = [row for row in self.html if not (wanted.skip_noindex and _noindex(row))]

    def write(self) -> ScanReport:
        """The report. Lists that are too long are cut, and ``cut`` says so."""
        state = self.state
        unvisited = state.unvisited()
        broken = self._broken_links()
        redirecting = [row for row in state.rows.values() if row.get("redirect_to")]
        # A hop in the middle is part of the chain that leads through it, unless something links to it as well.
        middle = {row["redirect_to"] for row in redirecting} - set(state.targets)
        chains = [self._chain(row) for row in redirecting if row["url"] not in middle]
        return ScanReport(
            url=normalise(self.wanted.url) or self.wanted.url,
            complete=not unvisited and not state.counts.get("too_deep") and not state.counts.get("targets_dropped"),
            unvisited=unvisited,
            totals=self._totals(len(broken), len(redirecting)),
            robots=self._robots_summary(),
            sitemaps=self._sitemap_summary(),
            broken_links=self._few(broken, "broken links"),
            redirects=self._few(chains, "redirects"),
            duplicate_titles=self._duplicate_titles(),
            missing_titles=self._few([r["url"] for r in self.judged if not r["title"]], "missing titles"),
            missing_descriptions=self._few(
                [r["url"] for r in self.judged if not r["description"]], "missing descriptions"
            ),
            missing_h1=self._few([r["url"] for r in self.judged if not any(r["h1"])], "missing h1"),
            images_without_alt=self._few(
                [
                    AltlessImages(page=r["url"], count=r["images_without_alt"], images=r["images_without_alt_urls"])
                    for r in self.html
                    if r["images_without_alt"]
                ],
                "pages with images without alt",
            ),
            charset_problems=self._few(
                [f"{r['url']}: {r['charset_problem']}" for r in self.html if r["charset_problem"]], "charset problems"
            ),
            slowest=_top(self.html, "elapsed_ms"),
            largest=_top(list(state.rows.values()), "size_bytes"),
            warnings=state.warnings,
            pages=self._page_rows(),
            cut=self.cut,
        )

    def _few(self, found: list[Any], what: str) -> list[Any]:
        if len(found) > LIST_MAX:
            self.cut.append(f"{what}: the first {LIST_MAX} of {len(found)} are listed")
        return found[:LIST_MAX]

    def _totals(self, broken: int, redirects: int) -> Totals:
        rows, targets, counts = self.state.rows.values(), self.state.targets.values(), self.state.counts
        statuses = Counter(str(row["status"] or row["error"]) for row in rows)
        external = sum(entry[0] for entry in targets if entry[1])
        links = sum(entry[0] for entry in targets)
        return Totals(
            fetched=len(rows),
            pages=len(self.html),
            by_status=dict(sorted(statuses.items())),
            links=links,
            links_internal=links - external,
            links_external=external,
            external_checked=len(self.state.external),
            broken_links=broken,
            redirects=redirects,
            images=sum(row["images"] for row in self.html),
            images_without_alt=sum(row["images_without_alt"] for row in self.html),
            noindex=sum(_noindex(row) for row in self.html),
            nofollow_skipped=counts.get("nofollow_skipped", 0),
            bytes=sum(row["size_bytes"] or 0 for row in rows),
            duration_s=round(self.state.elapsed_s, 3),
        )

    # -- links and redirects ------------------------------------------------------------------------------------------

    def _hops(self, url: str) -> tuple[list[Row], Row | None, bool]:
        """(redirecting rows from ``url`` on, the row at the end when it is known, whether it is a loop)."""
        passed: list[Row] = []
        seen: set[str] = set()
        row = self.state.rows.get(url)
        while row is not None and row.get("redirect_to") and len(passed) < _MAX_HOPS:
            passed.append(row)
            seen.add(row["url"])
            if row["redirect_to"] in seen:
                return passed, None, True
            row = self.state.rows.get(row["redirect_to"])
        return passed, row, False

    def _chain(self, row: Row) -> RedirectChain:
        passed, end, loop = self._hops(row["url"])
        return RedirectChain(
            url=row["url"],
            statuses=[hop["status"] for hop in passed],
            hops=[hop["redirect_to"] for hop in passed],
            final_status=end["status"] if end else None,
            loop=loop,
        )

    def _broken_links(self) -> list[BrokenLink]:
        found = []
        for url, (count, external, references) in self.state.targets.items():
            via: list[str] = []
            if external:
                result = self.state.external.get(url)
                status, error = (result["status"], result["error"]) if result else (None, None)
            else:
                passed, end, loop = self._hops(url)
                via = [hop["redirect_to"] for hop in passed]
                status = end["status"] if end else None
                error = "REDIRECT_LOOP" if loop else (end["error"] if end else None)
            if error or (status is not None and status >= 400):
                pages = [Reference(page=page, text=text) for page, text in references]
                found.append(
                    BrokenLink(
                        url=url, status=status, error=error, external=external, via=via, links=count, found_on=pages
                    )
                )
        return found

    # -- summaries ----------------------------------------------------------------------------------------------------

    def _duplicate_titles(self) -> list[DuplicateTitle]:
        pages: dict[str, list[str]] = defaultdict(list)
        for row in self.judged:
            # Pages that name another as canonical are copies on purpose.
            if row["title"] and row["canonical"] in {None, row["url"]}:
                pages[row["title"]].append(row["url"])
        same = [DuplicateTitle(title=title, pages=urls[:50]) for title, urls in pages.items() if len(urls) > 1]
        return self._few(same, "duplicate titles")

    def _robots_summary(self) -> RobotsSummary:
        blocked = list(self.state.blocked)
        return RobotsSummary(
            state=self.robots.state if self.robots and self.wanted.respect_robots else "ignored",
            status=self.robots.status if self.robots else None,
            crawl_delay_s=self.crawl_delay_s,
            blocked=len(blocked),
            blocked_urls=self._few(blocked, "URLs blocked by robots.txt"),
        )

    def _sitemap_summary(self) -> SitemapSummary:
        sitemap = self.state.sitemap
        if sitemap is None:
            return SitemapSummary()
        start = normalise(self.wanted.url)
        linked = self.state.targets
        orphans = [url for url in sitemap["urls"] if url not in linked and url != start]
        return SitemapSummary(
            files=sitemap["files"],
            urls=len(sitemap["urls"]),
            orphans=self._few(orphans, "orphans"),
            orphans_count=len(orphans),
            problems=sitemap["problems"],
        )

    def _page_rows(self) -> list[PageRow]:
        listed = set(self.state.sitemap["urls"]) if self.state.sitemap else set()
        rows: list[PageRow] = []
        size = 0
        for url, row in self.state.rows.items():
            linked_from = self.state.targets[url][0] if url in self.state.targets else 0
            made = PageRow(**row, linked_from=linked_from, in_sitemap=url in listed)
            size += len(made.model_dump_json().encode())
            if size > ROWS_BYTES_MAX:
                self.cut.append(f"pages: the first {len(rows)} of {len(self.state.rows)} rows are listed")
                break
            rows.append(made)
        return rows


def _noindex(row: Row) -> bool:
    return bool({"noindex", "none"} & set(row["robots"]))


def _top(rows: list[Row], column: str) -> list[Measured]:
    known = [row for row in rows if row[column]]
    known.sort(key=lambda row: row[column], reverse=True)
    return [Measured(url=row["url"], value=row[column]) for row in known[:_TOP]]
