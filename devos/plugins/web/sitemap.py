"""Sitemaps: XML lists, indexes of lists, plain text, any of them gzipped; always bounded."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import requests
from lxml import etree

from devos.plugins.web.urls import Site, normalise
from tasks_app.sdk import ActionError, outbound

MAX_FILES = 50
MAX_BYTES = 10_000_000
_MAX_INDEX_DEPTH = 3
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass
class Sitemaps:
    """What the sitemaps of a site said. ``cut``: there was more than the limits allow."""

    files: list[str] = field(default_factory=list)
    urls: dict[str, None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    cut: bool = False


def parse_sitemap(body: bytes) -> tuple[list[str], list[str]]:
    """(page URLs, sitemap URLs) as written in ``body``. Raises ValueError when it is no sitemap."""
    data = _unzipped(body)
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        lines = data.decode("utf-8-sig", "replace").split()
        if not all(line.startswith(("http://", "https://")) for line in lines):
            raise ValueError("neither XML nor a list of URLs")
        return lines, []
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"broken XML: {error}") from error
    if root is None:
        raise ValueError("broken XML")
    kind = etree.QName(root).localname
    if kind not in {"urlset", "sitemapindex"}:
        raise ValueError(f"the root element is {kind!r}, not urlset or sitemapindex")
    found = [text for entry in root if (text := _location(entry))]
    return ([], found) if kind == "sitemapindex" else (found, [])


def _location(entry: etree._Element) -> str | None:
    for child in entry:
        # Comments have a function as tag; image:loc and video:loc are other elements, deeper down.
        if isinstance(child.tag, str) and etree.QName(child).localname == "loc":
            return (child.text or "").strip() or None
    return None


def _unzipped(body: bytes) -> bytes:
    if not body.startswith(_GZIP_MAGIC):
        return body
    try:
        return zlib.decompressobj(wbits=31).decompress(body, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"broken gzip: {error}") from error


def collect(
    client: outbound.Client,
    starts: Iterable[str],
    site: Site,
    *,
    limit: int,
    timeout_s: float,
    verify: bool,
    before_each: Callable[[str], bool],
) -> Sitemaps:
    """Read the sitemaps ``starts`` and those they lead to; keep at most ``limit`` page URLs of ``site``.

    ``before_each(url)`` is called before each request (politeness, cancel) and may decline it with False.
    """
    found = Sitemaps()
    waiting = [(url, 0) for url in dict.fromkeys(starts)]
    known = {url for url, _ in waiting}
    while waiting:
        url, depth = waiting.pop(0)
        if len(found.files) >= MAX_FILES or len(found.urls) >= limit:
            found.cut = True
            break
        if url not in site or not before_each(url):
            continue
        pages, indexes = _read(client, url, found, timeout_s, verify)
        for text in pages:
            page = normalise(text, url)
            if page and page in site:
                found.urls.setdefault(page)
        for text in indexes if depth < _MAX_INDEX_DEPTH else ():
            inner = normalise(text, url)
            if inner and inner not in known:
                known.add(inner)
                waiting.append((inner, depth + 1))
    if len(found.urls) > limit:
        found.cut = True
        found.urls = dict.fromkeys(list(found.urls)[:limit])
    return found


def _read(
    client: outbound.Client, url: str, found: Sitemaps, timeout_s: float, verify: bool
) -> tuple[list[str], list[str]]:
    try:
        answer = client.request(
            "GET", url, timeout_s=timeout_s, max_bytes=MAX_BYTES, follow_redirects=True, max_redirects=5, verify=verify
        )
    except (requests.RequestException, ActionError) as error:
        found.problems.append(f"{url}: {error}")
        return [], []
    if answer.status != 200:
        # /sitemap.xml is only a guess; that it is missing is no problem worth a line.
        if answer.status != 404 or not url.endswith("/sitemap.xml"):
            found.problems.append(f"{url}: status {answer.status}")
        return [], []
    try:
        lists = parse_sitemap(answer.body)
    except ValueError as error:
        found.problems.append(f"{url}: {error}")
        return [], []
    found.files.append(url)
    found.cut = found.cut or answer.truncated
    return lists
