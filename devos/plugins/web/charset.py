"""From the bytes of a page to its text, when labels are missing or wrong."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"""<meta[^>]{0,400}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.+-]{1,40})""", re.IGNORECASE)
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_:.+-]{1,40})""", re.IGNORECASE)
_META_WITHIN = 4_096
# As browsers read these labels: the Windows code pages are supersets that real pages use.
_BROWSER_NAMES = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-11": "cp874",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}

# Python knows codecs that are no charsets (hex, idna, unicode_escape ...); these are what pages may be in.
_WEB_CODECS = frozenset(
    ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5", "big5hkscs", "euc_jp", "iso2022_jp"]
    + ["koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp866", "cp874", "cp932", "cp949"]
    + [f"cp125{n}" for n in range(9)]
    + [f"iso8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)]
)


@dataclass(frozen=True)
class Decoded:
    """``charset``: what the text was read in. ``problem``: why that is not what the page said, or None."""

    text: str
    charset: str
    problem: str | None = None


def decode_page(body: bytes, content_type: str = "", *, cut: bool = False) -> Decoded:
    """The text of an HTML page: byte order mark, then HTTP header, then meta, then UTF-8, then windows-1252.

    A label that the bytes contradict is not believed, and named in ``problem``. ``cut``: the body ends early. Never
    raises.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(name, "replace"), name)
    labels = _labels(body, content_type)
    as_utf8 = _strict(body, "utf-8", cut)
    problem = None
    for label in labels:
        codec = _codec(label)
        if codec is None:
            problem = problem or f"the page says charset {label}, which is unknown"
        elif (text := _strict(body, codec, cut)) is None:
            problem = problem or f"the page says charset {label}, but its bytes are not"
        elif codec != "utf-8" and as_utf8 is not None and not body.isascii():
            return Decoded(as_utf8, "utf-8", f"the page says charset {label}, but its bytes are utf-8")
        else:
            return Decoded(text, codec, problem)
    if as_utf8 is not None:
        return Decoded(as_utf8, "utf-8", problem or (None if labels or body.isascii() else "the page names no charset"))
    return Decoded(body.decode("cp1252", "replace"), "cp1252", problem or "the page names no charset")


def _labels(body: bytes, content_type: str) -> list[str]:
    found = []
    if header := _HEADER.search(content_type):
        found.append(header.group(1))
    if meta := _META.search(body[:_META_WITHIN]):
        label = meta.group(1).decode("ascii")
        # A meta that could be read as ASCII cannot be in UTF-16, whatever it says.
        found.append("utf-8" if label.lower().startswith("utf-16") else label)
    return found


def _codec(label: str) -> str | None:
    try:
        info = codecs.lookup(label)
    except (LookupError, UnicodeError):
        return None
    name = _BROWSER_NAMES.get(info.name, info.name)
    return name if name in _WEB_CODECS else None


def _strict(body: bytes, name: str, cut: bool) -> str | None:
    try:
        # A page that was cut at the size limit may end inside a character; any other may not.
        return codecs.getincrementaldecoder(name)().decode(body, final=not cut)
    except (UnicodeError, ValueError):
        return None
