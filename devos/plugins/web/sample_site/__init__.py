"""A small web site with faults on purpose, served on loopback for a first scan: ``python -m ... --port 8001``."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

_PAGES = Path(__file__).parent / "pages"
_SLOW_S = 0.15
_REDIRECTS = {"/old-about.html": (301, "/older-about.html"), "/older-about.html": (302, "/about.html")}
_LISTED = (
    *("/", "/about.html", "/products.html", "/products/hammer.html", "/products/saw.html", "/blog.html"),
    *("/slow.html", "/untitled.html", "/contact.html", "/kaffee.html", "/orphan.html"),
)
# One blue pixel.
_IMAGE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da6350"
    "4858f01f0003e40220a4d81ccc0000000049454e44ae426082"
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "SampleSite"
    disable_nagle_algorithm = True
    timeout = 30

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path in _REDIRECTS:
            status, target = _REDIRECTS[path]
            return self._answer(status, "text/plain", b"", location=target)
        if path == "/slow.html":
            time.sleep(_SLOW_S)
        made = self._made(path)
        if made is not None:
            return self._answer(200, *made)
        page = _page(path)
        if page is None:
            return self._answer(404, "text/html; charset=utf-8", b"<title>Not found</title><h1>Not found</h1>")
        charset = "iso-8859-1" if path == "/kaffee.html" else "utf-8"
        return self._answer(200, f"text/html; charset={charset}", page)

    do_HEAD = do_GET  # noqa: N815 - the name is the library's

    def _made(self, path: str) -> tuple[str, bytes] | None:
        here = f"http://{self.headers.get('Host', 'localhost')}"
        if path == "/robots.txt":
            text = f"User-agent: *\nDisallow: /private/\nCrawl-delay: 0.05\n\nSitemap: {here}/sitemap.xml\n"
            return "text/plain", text.encode()
        if path == "/sitemap.xml":
            lines = "".join(f"<url><loc>{here}{page}</loc></url>" for page in _LISTED)
            text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{lines}</urlset>'
            return "application/xml", text.encode()
        if path == "/price-list.pdf":
            return "application/pdf", b"%PDF-1.4\n%%EOF\n"
        return ("image/png", _IMAGE) if path.endswith(".png") else None

    def _answer(self, status: int, kind: str, body: bytes, location: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet: the scan says what it saw."""


def _page(path: str) -> bytes | None:
    name = "index.html" if path == "/" else path.lstrip("/")
    if ".." in PurePosixPath(name).parts or not name.endswith(".html"):
        return None
    file = _PAGES / name
    return file.read_bytes() if file.is_file() else None


def make_server(port: int, host: str = "127.0.0.1") -> ThreadingHTTPServer:
    """A server of the sample site that listens already; port 0 takes a free one. The caller runs and closes it."""
    server = ThreadingHTTPServer((host, port), _Handler)
    server.daemon_threads = True
    return server
