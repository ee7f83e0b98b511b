"""One spelling for each URL."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devos.plugins.web.urls import Site, normalise


@pytest.mark.parametrize(
    ("given_url", "expected"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("http://example.org:80/a", "http://example.org/a"),
        ("https://example.org:443/", "https://example.org/"),
        ("https://example.org:8443/", "https://example.org:8443/"),
        ("http://example.org/a#top", "http://example.org/a"),
        ("http://example.org/a?", "http://example.org/a"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/../../a/..", "http://example.org/"),
        ("http://example.org/a/b/..", "http://example.org/a/"),
        ("http://example.org/%7euser/%2e%2e/x", "http://example.org/x"),
        ("http://example.org/%e4%2f", "http://example.org/%E4%2F"),
        ("http://example.org/a b/ü?q=ü x", "http://example.org/a%20b/%C3%BC?q=%C3%BC%20x"),
        ("http://example.org/100%", "http://example.org/100%25"),
        ("  http://example.org/a\n\tb ", "http://example.org/ab"),
        ("http:\\\\example.org\\a?b\\c", "http://example.org/a?b%5Cc"),
        ("http://me:pw@example.org/", "http://example.org/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://example.org./", "http://example.org/"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("http://example.org/a;jsessionid=1F2?PHPSESSID=9&b=1", "http://example.org/a?b=1"),
        ("http://example.org/?utm_source=x&a=1&fbclid=2", "http://example.org/?a=1"),
        ("http://example.org/?b=2&a=1", "http://example.org/?b=2&a=1"),
        ("http://example.org//double", "http://example.org//double"),
    ],
)
def test_spellings(given_url, expected):
    assert normalise(given_url) == expected


@pytest.mark.parametrize(
    "given_url",
    [
        *(
            "",
            "mailto:a@example.org",
            "javascript:void(0)",
            "tel:1",
            "data:text/html,x",
            "ftp://example.org/",
            "#",
            "/a",
        ),
        *("http://", "http:///a", "http://[::1/", "http://a b/", "http://example.org:0/", "http://example.org:99999/"),
        *("http://exa mple.org/", "http://a..b/", "http://<x>/", "http://example.org/" + "a" * 5_000, "http://%41/"),
    ],
)
def test_what_cannot_be_fetched(given_url):
    assert normalise(given_url) is None


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("b.html", "http://example.org/dir/b.html"),
        ("?q=1", "http://example.org/dir/a.html?q=1"),
        ("//other.example/x", "http://other.example/x"),
        ("..", "http://example.org/"),
        ("#top", "http://example.org/dir/a.html"),
        ("", "http://example.org/dir/a.html"),
        ("http:c.html", "http://example.org/dir/c.html"),
        ("mailto:x", None),
    ],
)
def test_links_are_read_relative_to_their_page(link, expected):
    assert normalise(link, "http://example.org/dir/a.html") == expected


_TEXT = st.text(
    alphabet=st.one_of(st.sampled_from(string.printable + "%%%%....////;;??&&=#äß\u3002\uff0e\x00"), st.characters())
)


@settings(deadline=None)
@given(st.builds("".join, st.tuples(st.sampled_from(["http://", "HTTPS://", "//", ""]), _TEXT)))
def test_normalising_twice_changes_nothing(text):
    once = normalise(text)
    assert once is None or normalise(once) == once


@settings(deadline=None)
@given(_TEXT, _TEXT, _TEXT)
def test_any_path_and_query_is_stable(path, query, host):
    once = normalise(f"http://example.org/{path}?{query}")
    assert once is None or (normalise(once) == once and once.isascii())
    once = normalise(f"http://{host}/")
    assert once is None or normalise(once) == once


@settings(deadline=None)
@given(_TEXT)
def test_links_never_raise(text):
    once = normalise(text, "http://example.org/a/b?c")
    assert once is None or normalise(once) == once


def test_a_site_is_its_host_and_port():
    site = Site("http://example.org/start")
    assert "http://example.org/x" in site
    assert "https://example.org/x" in site
    assert "http://example.org:8080/" not in site
    assert "http://www.example.org/" not in site
    assert "http://notexample.org/" not in site


def test_subdomains_and_www():
    wide = Site("http://www.example.org/", include_subdomains=True)
    assert "http://shop.example.org/" in wide
    assert "http://example.org/" in wide
    assert "http://badexample.org/" not in wide
    narrow = Site("http://example.org/")
    assert narrow.adopt("http://www.example.org/") is True
    assert "http://www.example.org/" in narrow
    assert narrow.adopt("http://other.example/") is False
