"""Real servers on loopback: HTTP with a table of routes, HTTPS with certificates made here, DNS over UDP."""

import datetime
import ipaddress
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Seen:
    method: str
    path: str
    headers: dict
    body: bytes


@dataclass
class Site:
    """A running server. ``routes``: path -> (status, headers, body) or a function of the handler."""

    port: int
    scheme: str = "http"
    routes: dict = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def url(self, path="/", host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.port}{path}"

    def paths(self):
        return [request.path for request in self.seen]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, ssl.SSLError):
            self.close_connection = True

    def answer(self):
        site = self.server.site
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        site.seen.append(Seen(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        route = site.routes.get(self.path, site.routes.get(self.path.split("?")[0], (404, {}, b"not here")))
        if callable(route):
            route = route(self)
        if route is not None:
            self.reply(*route)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = answer

    def reply(self, status, headers, body):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        names = {name.lower() for name in headers}
        for name, value in headers.items():
            self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that hangs up early is part of what is tested


@contextmanager
def running(routes, tls=None):
    server = _Server(("127.0.0.1", 0), _Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.site = Site(server.server_address[1], "https" if tls else "http", dict(routes))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def serve():
    """serve(routes, tls=None) -> Site; stopped after the test."""
    stops = []

    def start(routes, tls=None):
        manager = running(routes, tls)
        stops.append(manager)
        return manager.__enter__()

    yield start
    for manager in stops:
        manager.__exit__(None, None, None)


@dataclass
class Authority:
    """A certificate authority of the test."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    folder: Path

    @property
    def ca_file(self):
        return str(self.folder / "ca.pem")

    @property
    def ca_pem(self):
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def server_context(self, names=("localhost",), days=90, self_signed=False, with_names=True):
        """A TLS context with a fresh certificate; negative ``days``: expired that long ago."""
        key = ec.generate_private_key(ec.SECP256R1())
        signer, issuer = (key, _name(names[0])) if self_signed else (self.key, self.certificate.subject)
        certificate = _certificate(names, key, signer, issuer, days, with_names)
        chain = self.folder / f"{names[0]}-{days}-{self_signed}.pem"
        parts = [certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key)]
        if not self_signed:
            parts.append(self.certificate.public_bytes(serialization.Encoding.PEM))
        chain.write_bytes(b"".join(parts))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _certificate(names, key, signer, issuer, days, with_names):
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(days=days, hours=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(names[0]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - datetime.timedelta(days=10))
        .not_valid_after(end)
    )
    if with_names:
        alternatives = [_general_name(name) for name in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _general_name(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ca")
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name("Test Authority"))
        .issuer_name(_name("Test Authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=400))
        .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
        .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(key, certificate, folder)
