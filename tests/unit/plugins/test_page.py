"""Reading single pages, sitemaps and robots files."""

import gzip
import time

import pytest

from devos.plugins.web.charset import decode_page
from devos.plugins.web.page import parse_page
from devos.plugins.web.sitemap import parse_sitemap

BASE = "http://example.org/dir/page.html"


def page(text, **headers):
    return parse_page(text.encode(), BASE, {"content-type": "text/html; charset=utf-8", **headers})


def test_everything_a_page_says():
    found = page(
        """<!doctype html><html lang="en-GB"><head><title> A
        title </title><meta name="Description" content=" About  it "><meta name="robots" content="NOINDEX, follow">
        <link rel="canonical" href="/canon"></head><body><h1>One <b>bold</b></h1><h2>Two</h2><h3>Three</h3><h3></h3>
        <a href="next.html">Next <i>page</i></a><a href="/x" rel="external nofollow"><img src="i.png" alt="Picture"></a>
        <a name="no-href">x</a><a href="mailto:a@b">mail</a><map><area href="/area"></map><iframe src="/frame"></iframe>
        <img src="/noalt.png"><img src="/deco.png" alt=""><script>var words = "not counted";</script></body></html>"""
    )
    assert (found.title, found.titles, found.lang) == ("A title", 1, "en-GB")
    assert found.description == "About it"
    assert (found.noindex, found.nofollow) == (True, False)
    assert found.canonical == "http://example.org/canon"
    assert (found.h1, found.h2, found.h3) == (["One bold"], ["Two"], ["Three", ""])
    assert [(link.url, link.text, link.nofollow) for link in found.links] == [
        ("http://example.org/dir/next.html", "Next page", False),
        ("http://example.org/x", "Picture", True),
        ("http://example.org/area", "", False),
        ("http://example.org/frame", "", False),
    ]
    assert (found.images, found.altless) == (3, 1)
    assert found.images_without_alt == ["http://example.org/noalt.png"]
    assert found.words == 8


def test_base_and_refresh():
    found = page('<base href="/other/"><meta http-equiv="Refresh" content="0; URL=\'next.html\'"><a href="a">a</a>')
    assert [link.url for link in found.links] == ["http://example.org/other/next.html", "http://example.org/other/a"]


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("5", None),
        ("5; url=/x", "http://example.org/x"),
        ("5;URL = '/x'", "http://example.org/x"),
        ("0, url=/x?a=1;b=2", "http://example.org/x?a=1;b=2"),
        (" " * 500_000, None),
    ],
)
def test_refreshes(content, target):
    found = page(f'<meta http-equiv=refresh content="{content}">')
    assert [link.url for link in found.links] == ([target] if target else [])


def test_hostile_pages_take_no_time():
    started = time.monotonic()
    page("<a href=/x>" * 5_000 + "x " * 500_000)
    page("<h1><a href=/" + "y" * 1_000_000 + ">" + " " * 1_000_000)
    page("<meta charset=" * 100_000)
    assert time.monotonic() - started < 5


def test_the_header_for_robots():
    assert page("<p>", **{"x-robots-tag": "noindex, nofollow"}).noindex
    other = page("<p>", **{"x-robots-tag": "max-snippet: 3, noarchive, otherbot: noindex, nofollow"})
    assert other.robots == {"max-snippet: 3", "noarchive"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "\x00", "<", "<html>", "<!-- only -->", "<a href='\x00'>x</a>", "plain text", "\ufffe"),
        *("<?xml version='1.0' encoding='x'?><p>", "<div>" * 10_000 + "deep", "<a href=http://[::1>x</a>"),
        "<title>" + "x" * 100_000,
    ],
)
def test_broken_pages_are_read_as_far_as_they_go(text):
    assert page(text).links is not None


def test_a_title_in_svg_is_none():
    assert page("<body><svg><title>Icon</title></svg></body>").title is None


@pytest.mark.parametrize(
    ("body", "content_type", "text", "charset", "problem"),
    [
        ("é".encode(), "text/html; charset=utf-8", "é", "utf-8", None),
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é", "cp1252", None),
        ("é€".encode("cp1252"), "text/html; charset=latin1", "é€", "cp1252", None),
        ("é".encode("latin-1"), "text/html; charset=utf-8", "é", "cp1252", "its bytes are not"),
        ("é".encode(), "text/html; charset=iso-8859-1", "é", "utf-8", "its bytes are utf-8"),
        (b'<meta charset="koi8-r">' + "я".encode("koi8-r"), "text/html", '<meta charset="koi8-r">я', "koi8-r", None),
        ("日本".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本", "cp932", None),
        (b"\xef\xbb\xbf" + "é".encode(), "text/html; charset=iso-8859-1", "é", "utf-8", None),
        ("é".encode("utf-16"), "text/html", "é", "utf-16-le", None),
        ("é".encode(), "text/html; charset=klingon", "é", "utf-8", "unknown"),
        (b"abc", "text/html; charset=hex", "abc", "utf-8", "unknown"),
        (b"abc", "text/html; charset=unicode_escape", "abc", "utf-8", "unknown"),
        (b"abc", "text/html; charset=idna", "abc", "utf-8", "unknown"),
        ("é".encode(), "text/html", "é", "utf-8", "names no charset"),
        (b"abc", "text/html", "abc", "utf-8", None),
        (b'<meta charset="utf-16">abc', "", '<meta charset="utf-16">abc', "utf-8", None),
        (b"\x81\x8d", "text/html; charset=utf-8", "\ufffd\ufffd", "cp1252", "its bytes are not"),
    ],
)
def test_charsets(body, content_type, text, charset, problem):
    decoded = decode_page(body, content_type)
    assert (decoded.text, decoded.charset) == (text, charset)
    assert (problem is None) == (decoded.problem is None)
    assert problem is None or problem in decoded.problem


def test_a_page_that_was_cut_may_end_inside_a_character():
    body = "é".encode()[:1]
    assert decode_page(body, "text/html; charset=utf-8", cut=True).charset == "utf-8"
    assert decode_page(body, "text/html; charset=utf-8").charset == "cp1252"


URLSET = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
 xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<!-- a comment --><url><!-- x --><image:image><image:loc>http://e/i.png</image:loc></image:image>
<loc> http://e/a </loc></url>
<url><loc>http://e/b?x=1&amp;y=2</loc></url><url></url></urlset>"""


def test_sitemaps():
    assert parse_sitemap(URLSET) == (["http://e/a", "http://e/b?x=1&y=2"], [])
    assert parse_sitemap(gzip.compress(URLSET))[0] == ["http://e/a", "http://e/b?x=1&y=2"]
    index = b"<sitemapindex><sitemap><loc>http://e/s1.xml.gz</loc></sitemap></sitemapindex>"
    assert parse_sitemap(index) == ([], ["http://e/s1.xml.gz"])
    assert parse_sitemap("\ufeffhttp://e/a\nhttps://e/b\n".encode()) == (["http://e/a", "https://e/b"], [])


@pytest.mark.parametrize("body", [b"<html></html>", b"<", b"words here", b"\x1f\x8bbroken", b"<a><b>"])
def test_what_is_no_sitemap(body):
    with pytest.raises(ValueError):
        parse_sitemap(body)


def test_sitemaps_do_not_expand_entities():
    laughs = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>'
    assert parse_sitemap(laughs) == ([], [])
