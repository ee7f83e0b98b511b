"""What one HTML page says about itself, and where it links to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lxml import etree, html

from devos.plugins.web.charset import decode_page
from devos.plugins.web.urls import normalise

MAX_LINKS = 5_000
_MAX_HEADINGS = 50
_MAX_ALTLESS = 50
_RAW_TEXT_MAX = 5_000
_BLANKS = re.compile(r"\s+")
_LINKING = {"a": "href", "area": "href", "iframe": "src", "frame": "src"}


@dataclass(frozen=True)
class Link:
    """A link as the page has it: the normalised target, its text, and whether it carries rel=nofollow."""

    url: str
    text: str
    nofollow: bool = False


@dataclass
class Page:
    """The findings of one page. Texts have their blanks folded and are cut at sensible lengths."""

    title: str | None = None
    titles: int = 0
    description: str | None = None
    robots: set[str] = field(default_factory=set)
    canonical: str | None = None
    lang: str | None = None
    charset: str = "utf-8"
    charset_problem: str | None = None
    h1: list[str] = field(default_factory=list)
    h2: list[str] = field(default_factory=list)
    h3: list[str] = field(default_factory=list)
    images: int = 0
    images_without_alt: list[str] = field(default_factory=list)
    altless: int = 0
    words: int = 0
    links: list[Link] = field(default_factory=list)
    links_cut: bool = False

    @property
    def noindex(self) -> bool:
        return bool(self.robots & {"noindex", "none"})

    @property
    def nofollow(self) -> bool:
        return bool(self.robots & {"nofollow", "none"})


def parse_page(body: bytes, url: str, headers: Mapping[str, str], *, cut: bool = False) -> Page:
    """Read an HTML page that was fetched from ``url``. Broken HTML is read as far as it goes; never raises.

    ``cut``: the body was cut at a size limit.
    """
    decoded = decode_page(body, headers.get("content-type", ""), cut=cut)
    page = Page(charset=decoded.charset.replace("cp125", "windows-125"), charset_problem=decoded.problem)
    page.robots |= _header_directives(headers.get("x-robots-tag", ""))
    root = _parse(decoded.text)
    if root is None:
        return page
    page.lang = _short(root.get("lang") or root.get("xml:lang"), 35)
    base = _base(root, url)
    for element in root.iter(etree.Element):
        _read_element(page, element, base)
    page.words = _count_words(root)
    return page


def _parse(text: str) -> html.HtmlElement | None:
    data = text.replace("\x00", "\ufffd").encode("utf-8", "replace")
    try:
        return html.document_fromstring(data, parser=html.HTMLParser(encoding="utf-8"))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None  # an empty page has no root


def _base(root: html.HtmlElement, url: str) -> str:
    first = next(root.iter("base"), None)
    return (normalise(first.get("href") or "", url) if first is not None else None) or url


def _read_element(page: Page, element: html.HtmlElement, base: str) -> None:
    tag = element.tag
    if tag in _LINKING:
        _read_link(page, element, base)
    elif tag in {"h1", "h2", "h3"}:
        headings: list[str] = getattr(page, tag)
        if len(headings) < _MAX_HEADINGS:
            headings.append(_text(element, 200))
    elif tag == "img":
        _read_image(page, element, base)
    elif tag == "meta":
        _read_meta(page, element, base)
    elif tag == "title" and not any(True for _ in element.iterancestors("svg")):
        page.titles += 1
        page.title = page.title or _text(element, 300) or None
    elif tag == "link" and "canonical" in (element.get("rel") or "").lower().split() and page.canonical is None:
        page.canonical = normalise(element.get("href") or "", base)


def _read_link(page: Page, element: html.HtmlElement, base: str) -> None:
    target = normalise(element.get(_LINKING[element.tag]) or "", base) if element.get(_LINKING[element.tag]) else None
    if target is None:
        return
    if len(page.links) >= MAX_LINKS:
        page.links_cut = True
        return
    relations = (element.get("rel") or "").lower().split()
    page.links.append(Link(target, _link_text(element), "nofollow" in relations))


def _link_text(element: html.HtmlElement) -> str:
    text = _text(element, 120)
    if text:
        return text
    image = next(element.iter("img"), None)
    described = (image.get("alt") if image is not None else None) or element.get("aria-label") or element.get("title")
    return _short(described, 120) or ""


def _read_image(page: Page, element: html.HtmlElement, base: str) -> None:
    page.images += 1
    if element.get("alt") is None:  # alt="" says "decoration" and is right
        page.altless += 1
        if len(page.images_without_alt) < _MAX_ALTLESS:
            source = element.get("src") or ""
            page.images_without_alt.append((normalise(source, base) or source)[:300])


def _read_meta(page: Page, element: html.HtmlElement, base: str) -> None:
    name = (element.get("name") or "").strip().lower()
    content = element.get("content") or ""
    if name == "description" and page.description is None:
        page.description = _short(content, 500)
    elif name == "robots":
        page.robots |= _directives(content)
    elif (element.get("http-equiv") or "").lower() == "refresh":
        target = _refresh_target(content, base)
        if target and len(page.links) < MAX_LINKS:
            page.links.append(Link(target, "(meta refresh)"))


def _refresh_target(content: str, base: str) -> str | None:
    """Where ``5; url='next.html'`` leads to; None when it only reloads."""
    place = content.replace(",", ";", 1).partition(";")[2].strip()
    name, equals, target = place.partition("=")
    if name.strip().lower() != "url" or not equals:
        return None
    return normalise(target.strip().strip("'\""), base)


def _directives(text: str) -> set[str]:
    return {part.strip().lower() for part in text.split(",") if part.strip()}


def _header_directives(text: str) -> set[str]:
    """X-Robots-Tag may speak to one robot ("otherbot: noindex, nofollow"); what is for others is not about us."""
    found: set[str] = set()
    for_everyone = True
    for part in (piece.strip().lower() for piece in text.split(",")):
        name, colon, _ = part.partition(":")
        if colon and not name.startswith(("max-", "unavailable_after")):
            for_everyone = False
        if part and for_everyone:
            found.add(part)
    return found


def _text(element: html.HtmlElement, limit: int) -> str:
    parts: list[str] = []
    size = 0
    for part in element.itertext(etree.Element):
        parts.append(part[:_RAW_TEXT_MAX])
        size += len(part)
        if size > _RAW_TEXT_MAX:
            break  # elements may be nested thousands deep: reading all of each would take for ever
    return _short("".join(parts), limit) or ""


def _short(text: str | None, limit: int) -> str | None:
    folded = _BLANKS.sub(" ", text or "").strip()
    return (folded if len(folded) <= limit else folded[: limit - 1] + "…") or None


def _count_words(root: html.HtmlElement) -> int:
    body = root.find("body")
    if body is None:
        return 0
    silent = {"script", "style", "noscript", "template"}
    count = 0
    for element in body.iter(etree.Element):
        if element.tag not in silent:
            count += len((element.text or "").split())
        count += len((element.tail or "").split())
    return count
