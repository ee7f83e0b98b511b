"""The action ``net.tls.check``."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from pydantic import Field, field_validator

from devos.plugins import certificates
from devos.plugins.fields import Port
from tasks_app.sdk import ActionError, ActionInput, ActionOutput, Context, RetryPolicy, action, outbound

_OLD_PROTOCOLS = frozenset({"SSLv2", "SSLv3", "TLSv1", "TLSv1.1"})


class TlsCheckInput(ActionInput):
    """Whose certificate to look at, and what is good enough."""

    host: str = Field(min_length=1, max_length=253, description="Host name or address to connect to.")
    port: Port = Field(443, description="TCP port.")
    server_name: str | None = Field(
        None, min_length=1, max_length=253, description="Name to ask for (SNI) and to compare; default: host."
    )
    min_days_left: float = Field(14, ge=0, le=3_650, description="Days of validity that must be left.")
    ca_pem: str | None = Field(
        None,
        max_length=200_000,
        description="Certificates (PEM) of the authorities to trust instead of the public ones.",
    )
    timeout_s: float = Field(10, gt=0, le=120, description="Longest time for connection and handshake, seconds.")
    fail_when_bad: bool = Field(False, description="Fail the task with CHECK_FAILED when there is a problem.")

    @field_validator("host", "server_name")
    @classmethod
    def _is_a_host(cls, value: str | None) -> str | None:
        if value is not None and (any(c.isspace() or ord(c) < 33 for c in value) or "/" in value or "@" in value):
            raise ValueError("must be a bare host name or address, without scheme, path or blanks")
        return value

    @field_validator("ca_pem")
    @classmethod
    def _is_pem(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                x509.load_pem_x509_certificates(value.encode())
            except ValueError as error:
                raise ValueError("holds no readable PEM certificates") from error
        return value


class CertificateFacts(ActionOutput):
    """One certificate of the chain."""

    subject: str
    issuer: str
    serial: str = Field(description="Serial number, hexadecimal.")
    not_before: str = Field(description="Start of validity, ISO 8601, UTC.")
    not_after: str = Field(description="End of validity, ISO 8601, UTC.")
    days_left: float
    key: str = Field(description="Kind and bits of the key.")
    signature: str = Field(description="Algorithm of the signature.")
    weaknesses: list[str]


class TlsProblem(ActionOutput):
    """``code``: EXPIRED, NOT_YET_VALID, EXPIRES_SOON, NAME_MISMATCH, SELF_SIGNED, UNTRUSTED, WEAK, OLD_PROTOCOL."""

    code: str
    message: str


class TlsCheckOutput(ActionOutput):
    ok: bool = Field(description="No problems.")
    problems: list[TlsProblem]
    trusted: bool = Field(description="The chain leads to a trusted authority and is in its time.")
    trust_error: str | None
    names: list[str] = Field(description="Names and addresses the certificate is for.")
    name_matches: bool
    self_signed: bool
    days_left: float
    expires_at: str
    issuer: str
    protocol: str
    cipher: str
    handshake_ms: float
    address: str = Field(description="The address that answered.")
    chain: list[CertificateFacts] = Field(description="What the server sent, its own certificate first.")


@dataclass(frozen=True)
class _Handshake:
    chain: list[x509.Certificate]
    protocol: str
    cipher: str
    address: str
    elapsed_ms: float


@action(
    "net.tls.check",
    version=1,
    title="TLS check",
    description=(
        "Looks at the certificate of a server: expiry, chain, names, issuer, protocol, weak signatures. Expired and "
        "self-signed ones are reported like others; fails only when told to, or when there is no TLS to look at."
    ),
    permission="net.tls",
    timeout_s=300,
    retry=RetryPolicy(max_attempts=3, strategy="exponential", delay_ms=1_000, max_delay_ms=30_000),
    modes={"sync", "async"},
    agent_tool=True,
)
def tls_check(ctx: Context, input: TlsCheckInput) -> TlsCheckOutput:
    """Shake hands as a strict client; when that fails over the certificate, again as one that takes anything."""
    trust_error = None
    try:
        seen = _shake_hands(input, _strict(input.ca_pem))
    except ssl.SSLCertVerificationError as error:
        trust_error = error.verify_message
        ctx.raise_if_cancelled()
        seen = _shake_hands(input, _lenient())
    except ssl.SSLError:
        # An old server may speak only what strict clients refuse; that is a finding, not the end.
        trust_error = "the server speaks no protocol or cipher that is safe today"
        seen = _shake_hands(input, _lenient())
    output = _judge(input, seen, trust_error)
    if output.problems and input.fail_when_bad:
        text = "; ".join(problem.message for problem in output.problems)
        raise ActionError("CHECK_FAILED", text, retryable=False, details=output.model_dump(mode="json"))
    return output


def _strict(ca_pem: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_pem)
    context.check_hostname = False  # names are compared here, so that trust and name are told apart
    return context


def _lenient() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def _shake_hands(wanted: TlsCheckInput, context: ssl.SSLContext) -> _Handshake:
    server_name = (wanted.server_name or wanted.host).strip("[]").rstrip(".")
    raw = outbound.open_connection(wanted.host.strip("[]"), wanted.port, timeout_s=wanted.timeout_s)
    with raw:
        started = time.monotonic()
        raw.settimeout(wanted.timeout_s)
        try:
            with context.wrap_socket(raw, server_hostname=server_name) as wrapped:
                return _Handshake(
                    chain=[certificates.load(der) for der in _sent_chain(wrapped)],
                    protocol=wrapped.version() or "unknown",
                    cipher=(wrapped.cipher() or ("unknown",))[0],
                    address=str(wrapped.getpeername()[0]),
                    elapsed_ms=round((time.monotonic() - started) * 1000, 1),
                )
        except ssl.SSLCertVerificationError:
            raise
        except (ssl.SSLError, ConnectionError) as error:
            if context.verify_mode is ssl.CERT_REQUIRED and isinstance(error, ssl.SSLError):
                raise
            raise ActionError(
                "TLS_HANDSHAKE_FAILED",
                f"{wanted.host}:{wanted.port} does not complete a TLS handshake: {_reason(error)}",
                retryable=False,
            ) from error


def _reason(error: OSError) -> str:
    return str(getattr(error, "reason", None) or error)


def _sent_chain(wrapped: ssl.SSLSocket) -> list[bytes]:
    """The chain as DER. Python 3.13 made the call public; before, it is there under another name."""
    public: Any = getattr(wrapped, "get_unverified_chain", None)
    if public is not None:
        return list(public())
    inner: Any = getattr(wrapped._sslobj, "get_unverified_chain", None)  # type: ignore[attr-defined]
    sent = [ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in inner()] if inner is not None else []
    leaf = wrapped.getpeercert(binary_form=True)
    return sent or ([leaf] if leaf else [])


def _judge(wanted: TlsCheckInput, seen: _Handshake, trust_error: str | None) -> TlsCheckOutput:
    if not seen.chain:
        raise ActionError("TLS_HANDSHAKE_FAILED", f"{wanted.host} sent no certificate", retryable=False)
    leaf = seen.chain[0]
    server_name = wanted.server_name or wanted.host
    problems = _problems(wanted, seen, trust_error, server_name)
    return TlsCheckOutput(
        ok=not problems,
        problems=problems,
        trusted=trust_error is None,
        trust_error=trust_error,
        names=certificates.names_of(leaf)[:200],
        name_matches=certificates.is_for(leaf, server_name),
        self_signed=certificates.is_self_signed(leaf),
        days_left=certificates.days_left(leaf),
        expires_at=leaf.not_valid_after_utc.isoformat(),
        issuer=certificates.name_of(leaf.issuer),
        protocol=seen.protocol,
        cipher=seen.cipher,
        handshake_ms=seen.elapsed_ms,
        address=seen.address,
        chain=[_facts(certificate) for certificate in seen.chain[:20]],
    )


def _problems(wanted: TlsCheckInput, seen: _Handshake, trust_error: str | None, name: str) -> list[TlsProblem]:
    leaf = seen.chain[0]
    found: list[tuple[str, str]] = []
    left = certificates.days_left(leaf)
    if left < 0:
        found.append(("EXPIRED", f"the certificate expired {-left:g} days ago"))
    elif left < wanted.min_days_left:
        found.append(("EXPIRES_SOON", f"the certificate expires in {left:g} days, {wanted.min_days_left:g} are wanted"))
    if certificates.not_yet_valid(leaf):
        found.append(("NOT_YET_VALID", f"the certificate is valid from {leaf.not_valid_before_utc.isoformat()}"))
    if not certificates.is_for(leaf, name):
        found.append(("NAME_MISMATCH", f"the certificate is not for {name}"))
    if trust_error is not None and certificates.is_self_signed(leaf):
        found.append(("SELF_SIGNED", "the certificate is signed by itself"))
    elif trust_error is not None and left >= 0:
        found.append(("UNTRUSTED", f"the chain is not trusted: {trust_error}"))
    weak = [f"{certificates.name_of(c.subject)}: {text}" for c in seen.chain for text in certificates.weaknesses(c)]
    if weak:
        found.append(("WEAK", "weak certificates: " + ", ".join(weak)))
    if seen.protocol in _OLD_PROTOCOLS:
        found.append(("OLD_PROTOCOL", f"the server agreed on {seen.protocol}; TLS 1.2 is the least that is safe"))
    return [TlsProblem(code=code, message=message) for code, message in found]


def _facts(certificate: x509.Certificate) -> CertificateFacts:
    kind, bits = certificates.key_of(certificate)
    return CertificateFacts(
        subject=certificates.name_of(certificate.subject),
        issuer=certificates.name_of(certificate.issuer),
        serial=f"{certificate.serial_number:x}",
        not_before=certificate.not_valid_before_utc.isoformat(),
        not_after=certificate.not_valid_after_utc.isoformat(),
        days_left=certificates.days_left(certificate),
        key=f"{kind} {bits}",
        signature=certificates.signature_of(certificate),
        weaknesses=certificates.weaknesses(certificate),
    )
