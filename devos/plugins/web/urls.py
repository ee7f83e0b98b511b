"""URLs in one spelling, so that a crawler visits each page once."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urljoin, urlsplit, urlunsplit

import idna

MAX_LENGTH = 4_096
DEFAULT_PORTS = {"http": 80, "https": 443}

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_IN_PATH = _UNRESERVED | frozenset(b"!$&'()*+,;=:@/")
_IN_QUERY = _IN_PATH | frozenset(b"?[]|")
_PLAIN = re.compile(r"[A-Za-z0-9._~/=&-]*")  # allowed in a path as in a query
_HEX = frozenset(b"0123456789abcdefABCDEF")
_DROPPED = re.compile(r"[\t\r\n]")
# Blanks and control characters around a URL in HTML mean nothing.
_AROUND = "".join(map(chr, range(0x21)))
_ASCII_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?")
_IPV6_HOST = re.compile(r"[0-9a-f:.]+")
# Parameters that name a visit, not a page: the same page would be fetched once for each.
_VISIT_PARAMETER = re.compile(
    r"(?:phpsessid|jsessionid|aspsessionid\w*|sessionid|session_id|oscsid|zenid|cfid|cftoken"
    r"|utm_\w+|gclid|fbclid|msclkid|mc_cid|mc_eid)(?:=|$)",
    re.IGNORECASE,
)
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/;]*", re.IGNORECASE)


def normalise(url: str, base: str | None = None) -> str | None:
    """The one spelling of ``url`` (read relative to ``base``), or None when it is no http(s) URL that can be fetched.

    Lower-case scheme and host (IDNA), no default port, no user name, no fragment, dot segments resolved, percent
    signs upper case and only where needed, no session or campaign parameters. Applying it twice changes nothing.
    """
    text = _forward_slashes(_DROPPED.sub("", url.strip(_AROUND)))
    if len(text) > 2 * MAX_LENGTH:
        return None
    try:
        return _normalise_full(urljoin(base, text) if base else text)
    except (ValueError, UnicodeError):
        return None


# Pages of a site share most of their links, so a small cache saves most of the work.
@lru_cache(maxsize=4_096)
def _normalise_full(text: str) -> str | None:
    parts = urlsplit(text)
    scheme, port = parts.scheme.lower(), parts.port
    host = _host(parts.hostname or "")
    if scheme not in DEFAULT_PORTS or not host or port == 0:
        return None
    netloc = host if port in {None, DEFAULT_PORTS[scheme]} else f"{host}:{port}"
    path = _resolve_dots(_PATH_SESSION.sub("", _percent(parts.path, _IN_PATH)))
    kept = [p for p in _percent(parts.query, _IN_QUERY).split("&") if p and not _VISIT_PARAMETER.match(p)]
    result = urlunsplit((scheme, netloc, path, "&".join(kept), ""))
    return result if len(result) <= MAX_LENGTH else None


def _forward_slashes(text: str) -> str:
    """Backslashes before the query are slashes, as in browsers."""
    end = min((i for i in (text.find("?"), text.find("#")) if i >= 0), default=len(text))
    return text[:end].replace("\\", "/") + text[end:]


def _host(host: str) -> str | None:
    if ":" in host:
        return f"[{host}]" if _IPV6_HOST.fullmatch(host) else None
    if not host.isascii():
        host = idna.encode(host, uts46=True).decode()  # IDNAError is a UnicodeError
    host = host.lower()
    return host.rstrip(".") if _ASCII_HOST.fullmatch(host) and ".." not in host else None


def _percent(text: str, plain: frozenset[int]) -> str:
    if _PLAIN.fullmatch(text):
        return text
    raw = text.encode("utf-8", "replace")
    out: list[str] = []
    i = 0
    while i < len(raw):
        byte = raw[i]
        if byte == 0x25 and i + 2 < len(raw) and raw[i + 1] in _HEX and raw[i + 2] in _HEX:
            value = int(raw[i + 1 : i + 3], 16)
            out.append(chr(value) if value in _UNRESERVED else f"%{value:02X}")
            i += 3
            continue
        out.append(chr(byte) if byte in plain else f"%{byte:02X}")
        i += 1
    return "".join(out)


def _resolve_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:] if path.startswith("/") else path.split("/")
    for segment in segments:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def origin(url: str) -> str:
    """Scheme, host and port of a normalised URL: what one robots.txt speaks for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


class Site:
    """Which URLs belong to the scanned site: the start's host and port, with its subdomains when asked.

    http and https of one host are one site, as long as both use their default port.
    """

    def __init__(self, start: str, include_subdomains: bool = False) -> None:
        self._places = {_place(start)}
        self._parent = _without_www(_place(start)[0]) if include_subdomains else None

    def __contains__(self, url: str) -> bool:
        host, port = _place(url)
        if (host, port) in self._places:
            return True
        if self._parent is None:
            return False
        return (host == self._parent or host.endswith("." + self._parent)) and port in {p for _, p in self._places}

    def adopt(self, url: str) -> bool:
        """Take in the host ``url`` when it differs from the start's by ``www.`` only; says whether it did."""
        host, port = _place(url)
        if any(_without_www(host) == _without_www(known) and port == at for known, at in self._places):
            self._places.add((host, port))
            return True
        return False


@lru_cache(maxsize=4_096)
def _place(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    port = None if parts.port in {None, DEFAULT_PORTS.get(parts.scheme)} else parts.port
    return parts.hostname or "", port


def _without_www(host: str) -> str:
    return host.removeprefix("www.")
