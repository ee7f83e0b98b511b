"""seo.website.scan against real sites on loopback."""

import gzip
import threading
import time

import pytest
import requests

from devos.plugins.web.sample_site import make_server
from devos.plugins.web.scan import scan
from tasks_app.domain.errors import ActionError, InvalidInput
from tasks_app.runtime.context import Cancelled, HandBack
from tasks_app.runtime.slots import Signal
from tasks_app.testing import RecordingReporter, run_action

HTML = {"Content-Type": "text/html; charset=utf-8"}


def html(body="", title="T", head=""):
    head = f"<title>{title}</title><meta name=description content=d>{head}"
    return 200, HTML, f"<html><head>{head}</head><body><h1>h</h1>{body}</body></html>"


def links(*targets):
    return "".join(f'<a href="{target}">to {target}</a>' for target in targets)


def run(site, path="/", reporter=None, checkpoint=None, **options):
    value = {"url": site.url(path), "delay_ms": 0, **options}
    return run_action(scan, value, reporter=reporter, checkpoint=checkpoint)


def visited(site):
    return [path for path in site.paths() if path not in {"/robots.txt", "/sitemap.xml"}]


@pytest.fixture(scope="module")
def sample():
    server = make_server(0)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_sample_site(sample):
    reporter = RecordingReporter()
    report = run_action(scan, {"url": sample, "delay_ms": 0}, reporter=reporter)
    assert report.complete
    assert report.totals.fetched == 18
    assert report.totals.by_status == {"200": 14, "301": 1, "302": 1, "404": 2}
    assert {
        (b.url.removeprefix(sample), b.status, b.found_on[0].page.removeprefix(sample), b.found_on[0].text)
        for b in report.broken_links
    } == {
        ("/winter-sale.html", 404, "/", "Winter sale"),
        ("/manual/saw.html", 404, "/products/saw.html", "manual"),
    }
    assert [(c.statuses, c.final_status) for c in report.redirects] == [([301, 302], 200)]
    assert [d.title for d in report.duplicate_titles] == ["Product"]
    assert report.missing_titles == [f"{sample}/untitled.html"]
    assert report.missing_h1 == [f"{sample}/untitled.html"]
    assert report.missing_descriptions == [f"{sample}/blog.html"]
    assert report.robots.blocked_urls == [f"{sample}/private/accounts.html"]
    assert report.sitemaps.orphans == [f"{sample}/orphan.html"]
    assert report.slowest[0].url == f"{sample}/slow.html"
    assert report.slowest[0].value >= 150
    rows = {row.url.removeprefix(sample): row for row in report.pages}
    assert rows["/kaffee.html"].title == "Kaffee für die Brücke"
    assert rows["/kaffee.html"].charset == "windows-1252"
    assert rows["/products/hammer.html"].depth == 2
    assert rows["/"].images_without_alt == 1
    assert rows["/price-list.pdf"].content_type == "application/pdf"
    assert "/products/print.html" not in rows
    assert reporter.progress[-1]["percentage"] == 100


def test_limits(serve):
    site = serve({"/": html(links("/a")), "/a": html(links("/b")), "/b": html(links("/c")), "/c": html()})
    report = run(site, max_depth=1)
    assert visited(site) == ["/", "/a"]
    assert not report.complete
    site.seen.clear()
    report = run(site, max_pages=3)
    assert visited(site) == ["/", "/a", "/b"]
    assert (report.complete, report.unvisited) == (False, 1)


def test_a_page_is_visited_once_however_it_is_spelled(serve):
    site = serve(
        {"/": html(links("/a", "/a#x", "/./a", "/%61", "a?utm_source=x", "//127.0.0.1:{p}/a")), "/a": html(links("/"))}
    )
    site.routes["/"] = html(links("/a", "/a#x", "/./a", "/%61", "a?utm_source=x", f"//127.0.0.1:{site.port}/a"))
    run(site)
    assert visited(site) == ["/", "/a"]


def test_other_hosts_are_not_visited_but_can_be_checked(serve):
    other = serve({"/ok": html(), "/get-only": lambda h: (405, {}, "") if h.command == "HEAD" else html()})
    site = serve({"/": html(links(other.url("/ok"), other.url("/gone"), other.url("/get-only")))})
    report = run(site)
    assert other.seen == []
    assert (report.totals.links_external, report.broken_links) == (3, [])
    report = run(site, check_external=True)
    assert [(b.url, b.status, b.external) for b in report.broken_links] == [(other.url("/gone"), 404, True)]
    assert [(r.method, r.path) for r in other.seen][:1] == [("HEAD", "/ok")]


def test_robots_are_obeyed(serve):
    robots = "User-agent: *\nDisallow: /no\nAllow: /no/but\n\nUser-agent: OtherBot\nDisallow: /\n"
    site = serve({"/robots.txt": (200, {}, robots), "/": html(links("/no/x", "/no/but", "/yes"))})
    report = run(site)
    assert visited(site) == ["/", "/no/but", "/yes"]
    assert report.robots.blocked == 1
    site.seen.clear()
    assert run(site, user_agent="OtherBot/2").totals.fetched == 0
    assert visited(site) == []
    assert site.seen[0].headers["user-agent"] == "OtherBot/2"
    run(site, respect_robots=False)
    assert "/no/x" in visited(site)


@pytest.mark.parametrize(
    ("status", "fetched", "state"), [(404, 1, "missing"), (403, 1, "missing"), (503, 0, "unreachable")]
)
def test_robots_that_are_missing_or_broken(serve, status, fetched, state):
    site = serve({"/robots.txt": (status, {}, "User-agent: *\nDisallow: /"), "/": html()})
    report = run(site)
    assert (report.totals.fetched, report.robots.state) == (fetched, state)
    assert bool(report.warnings) == (state == "unreachable")


@pytest.mark.parametrize("delay", ["nan", "inf", "-1", "1e400", "soon"])
def test_a_crawl_delay_that_is_none(serve, delay):
    site = serve(
        {"/robots.txt": (200, {}, f"User-agent: *\nCrawl-delay: {delay}\n"), "/": html(links("/a")), "/a": html()}
    )
    assert run(site).totals.fetched == 2


def test_crawl_delay_and_delay(serve):
    site = serve({"/robots.txt": (200, {}, "User-agent: *\nCrawl-delay: 0.1\n"), "/": html(links("/a")), "/a": html()})
    times = []
    for path in ("/", "/a"):
        site.routes[path] = (lambda answer: lambda h: times.append(time.monotonic()) or answer)(site.routes[path])
    run(site, delay_ms=1)
    assert times[1] - times[0] >= 0.09


def test_sitemaps_index_gzip_and_orphans(serve):
    site = serve({"/": html(links("/a")), "/a": html(), "/lonely": html()})
    inner = f"<urlset><url><loc>{site.url('/a')}</loc></url><url><loc>{site.url('/lonely')}</loc></url>" + (
        "<url><loc>http://elsewhere.example/</loc></url></urlset>"
    )
    site.routes["/robots.txt"] = (200, {}, f"Sitemap: {site.url('/index.xml')}\n")
    site.routes["/index.xml"] = (
        200,
        {},
        f"<sitemapindex><sitemap><loc>{site.url('/s.gz')}</loc></sitemap></sitemapindex>",
    )
    site.routes["/s.gz"] = (200, {"Content-Type": "application/gzip"}, gzip.compress(inner.encode()))
    report = run(site)
    assert report.sitemaps.files == [site.url("/index.xml"), site.url("/s.gz")]
    assert report.sitemaps.orphans == [site.url("/lonely")]
    assert {row.url: row.in_sitemap for row in report.pages}[site.url("/a")]


def test_redirect_loops_and_chains(serve):
    site = serve(
        {
            "/": html(links("/loop", "/to-gone", "/self")),
            "/loop": (302, {"Location": "/loop2"}, ""),
            "/loop2": (302, {"Location": "/loop"}, ""),
            "/self": (301, {"Location": "/self"}, ""),
            "/to-gone": (301, {"Location": "/gone"}, ""),
            "/gone": (410, {}, ""),
        }
    )
    report = run(site)
    assert {b.url: (b.status, b.error) for b in report.broken_links} == {
        site.url("/loop"): (None, "REDIRECT_LOOP"),
        site.url("/self"): (None, "REDIRECT_LOOP"),
        site.url("/to-gone"): (410, None),
    }
    assert {c.url: c.loop for c in report.redirects}[site.url("/loop")] is True


def test_endless_redirects_end(serve):
    def onwards(handler):
        number = int(handler.path.partition("=")[2] or 0)
        return 302, {"Location": f"/?n={number + 1}"}, ""

    site = serve({"/": onwards})
    report = run(site, use_sitemaps=False)
    assert report.totals.fetched == 11
    assert "redirects more than" in report.warnings[0]


def test_the_start_may_move_to_www_only(serve):
    site = serve({"/": (301, {"Location": "http://elsewhere.example/"}, "")})
    report = run(site)
    assert "another host" in report.warnings[0]
    assert report.totals.fetched == 1


def test_nofollow_and_noindex(serve):
    site = serve(
        {
            "/": html('<a href="/a" rel="nofollow">a</a>' + links("/b")),
            "/b": html(links("/c"), title="", head='<meta name="robots" content="noindex,nofollow">'),
        }
    )
    report = run(site)
    assert visited(site) == ["/", "/b"]
    assert (report.totals.nofollow_skipped, report.totals.noindex, report.missing_titles) == (2, 1, [])
    report = run(site, respect_nofollow=False, skip_noindex=False)
    assert {"/a", "/c"} <= set(visited(site))
    assert report.missing_titles == [site.url("/b")]


def test_only_html_is_read_and_large_pages_are_cut(serve):
    site = serve(
        {
            "/": html(links("/big", "/movie")),
            "/big": html("x" * 50_000),
            "/movie": (200, {"Content-Type": "video/mp4"}, b"0" * 200_000),
        }
    )
    report = run(site, max_page_bytes=10_000)
    rows = {row.url: row for row in report.pages}
    assert rows[site.url("/big")].truncated
    assert (rows[site.url("/movie")].size_bytes, rows[site.url("/movie")].title) == (200_000, None)


def test_pages_that_fail_are_rows(serve):
    def hang_up(handler):
        handler.close_connection = True

    site = serve({"/": html(links("/drop", "/err")), "/drop": hang_up, "/err": (500, {}, "")})
    report = run(site)
    assert {b.url: (b.status, b.error) for b in report.broken_links} == {
        site.url("/drop"): (None, "CONNECTION_FAILED"),
        site.url("/err"): (500, None),
    }


def test_a_busy_site_is_asked_again(serve):
    answers = [(429, {"Retry-After": "0"}, ""), (503, {"Retry-After": "0"}, ""), html()]
    site = serve({"/": lambda handler: answers.pop(0)})
    assert run(site).totals.by_status == {"200": 1}


def test_a_site_that_cannot_be_reached_fails_the_scan():
    with pytest.raises(requests.ConnectionError):
        run_action(scan, {"url": "http://127.0.0.1:9/"})


def test_refused_addresses_fail_the_scan(serve, settings):
    settings.DEVOS = settings.DEVOS.model_copy(update={"allow_private_addresses": False})
    with pytest.raises(ActionError) as refused:
        run(serve({}))
    assert refused.value.code == "ADDRESS_REFUSED"


def test_links_to_refused_addresses_are_broken_not_fatal(serve):
    site = serve({"/": html(links("http://169.254.169.254/latest", f"http://{'a' * 64}.test/"))})
    report = run(site, check_external=True)
    assert [b.error for b in report.broken_links] == ["ADDRESS_REFUSED", "NAME_NOT_RESOLVED"]


class StopsAfter(RecordingReporter):
    """Asks to hand back, or to cancel, once a number of requests has been seen."""

    def __init__(self, site, requests_seen, kind):
        super().__init__()
        self.site, self.limit, self.kind = site, requests_seen, kind

    def stopping(self):
        return self.kind == "hand back" and len(self.site.seen) >= self.limit

    def signal(self):
        return Signal.CANCEL if self.kind == "cancel" and len(self.site.seen) >= self.limit else None


def test_a_paused_scan_goes_on_where_it_was(serve):
    pages = {f"/{n}": html(links(f"/{n + 1}"), title=f"Page {n}") for n in range(1, 8)}
    site = serve({"/": html(links("/1", "/missing")), **pages})
    whole = run(site)
    site.seen.clear()
    checkpoint, sittings = None, 0
    while True:
        try:
            report = run(site, checkpoint=checkpoint, reporter=StopsAfter(site, len(site.seen) + 5, "hand back"))
            break
        except HandBack as paused:
            checkpoint, sittings = paused.checkpoint, sittings + 1
    assert sittings >= 2
    assert sorted(visited(site)) == sorted(set(visited(site))), "no page is fetched twice"
    same = {"pages", "slowest", "totals"}
    assert report.model_dump(exclude=same) == whole.model_dump(exclude=same)
    assert [row.url for row in report.pages] == [row.url for row in whole.pages]
    assert report.totals.duration_s > 0


def test_cancel_ends_a_polite_wait_at_once(serve):
    site = serve({"/": html(links("/a")), "/a": html()})
    started = time.monotonic()
    with pytest.raises(Cancelled):
        run(site, delay_ms=30_000, use_sitemaps=False, respect_robots=False, reporter=StopsAfter(site, 1, "cancel"))
    assert time.monotonic() - started < 1


def test_cancel_ends_a_request_that_hangs(serve):
    release = threading.Event()
    site = serve({"/": lambda handler: release.wait(10) and None})
    reporter = StopsAfter(site, 1, "cancel")
    started = time.monotonic()
    with pytest.raises(Cancelled):
        run(site, use_sitemaps=False, respect_robots=False, reporter=reporter)
    assert time.monotonic() - started < 2
    release.set()


def test_the_report_of_a_large_site_stays_small(serve, monkeypatch):
    monkeypatch.setattr("devos.plugins.web.report.ROWS_BYTES_MAX", 20_000)
    monkeypatch.setattr("devos.plugins.web.report.LIST_MAX", 5)
    site = serve({"/": html(links(*(f"/missing-{n}" for n in range(60))))})
    report = run(site)
    assert len(report.broken_links) == 5
    assert report.totals.broken_links == 60
    assert len(report.pages) < 61
    assert len(report.cut) == 2


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"url": "ftp://example.org/"}, "input.url"),
        ({"url": "example.org"}, "input.url"),
        ({"max_pages": 0}, "input.max_pages"),
        ({"delay_ms": -1}, "input.delay_ms"),
        ({"user_agent": "a\r\nX: y"}, "input.user_agent"),
        ({"depth": 3}, "input.depth"),
    ],
)
def test_bad_input_is_named(wrong, field):
    with pytest.raises(InvalidInput) as refused:
        run_action(scan, {"url": "http://example.org/", **wrong})
    assert [detail["field"] for detail in refused.value.details] == [field]
