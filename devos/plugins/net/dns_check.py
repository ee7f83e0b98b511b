"""The action ``net.dns.check``."""

from __future__ import annotations

import ipaddress
import re
import time
from typing import Annotated, Any, Literal

import dns.exception
import dns.name
import dns.resolver
import dns.reversename
from pydantic import Field, field_validator, model_validator

from tasks_app.sdk import ActionError, ActionInput, ActionOutput, Context, action, outbound

RecordType = Literal[
    "A", "AAAA", "CNAME", "MX", "NS", "TXT", "SOA", "SRV", "CAA", "PTR", "DS", "DNSKEY", "TLSA", "HTTPS"
]
AnswerState = Literal["ok", "no_records", "nxdomain", "timeout", "server_failure"]
_NAMESERVER = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d{1,5}))?")


class DnsCheckInput(ActionInput):
    """Which records to ask for, whom, and what they should be."""

    name: str = Field(
        min_length=1, max_length=253, description="Name to look up, like example.org; with type PTR also an address."
    )
    types: list[RecordType] = Field(["A"], min_length=1, max_length=14, description="Record types to ask for.")
    expect: dict[RecordType, list[Annotated[str, Field(max_length=2_000)]]] = Field(
        default_factory=dict,
        description='Values that must be there, by type, like {"A": ["192.0.2.1"], "MX": ["10 mail.example.org"]}.',
    )
    exact: bool = Field(False, description="The values found must be the expected ones and no others.")
    nameserver: str | None = Field(
        None,
        max_length=300,
        description="Server to ask, host or host:port ([address]:port for IPv6); default: the system's.",
    )
    timeout_s: float = Field(5, gt=0, le=60, description="Longest time for each type, seconds.")
    fail_when_wrong: bool = Field(
        False, description="Fail the task with CHECK_FAILED when something is not as expected."
    )

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        try:
            dns.name.from_text(value)
        except (dns.exception.DNSException, UnicodeError) as error:
            raise ValueError(f"is not a domain name ({error})") from error
        return value

    @field_validator("nameserver")
    @classmethod
    def _is_a_server(cls, value: str | None) -> str | None:
        if value is not None:
            split_server(value)
        return value

    @model_validator(mode="after")
    def _expected_types_are_asked(self) -> DnsCheckInput:
        missing = sorted(set(self.expect) - set(self.types))
        if missing:
            raise ValueError(f"expect names types that are not asked for: {', '.join(missing)}; add them to types")
        return self


class DnsAnswer(ActionOutput):
    """What was found for one record type."""

    type: RecordType
    state: AnswerState = Field(
        description="ok; no_records: the name has no such records; nxdomain: no such name; timeout; server_failure."
    )
    values: list[str] = Field(default_factory=list)
    canonical_name: str | None = Field(None, description="Where the name points to by CNAME.")
    ttl_s: int | None = None
    elapsed_ms: float
    missing: list[str] = Field(default_factory=list, description="Expected values that were not there.")
    unexpected: list[str] = Field(default_factory=list, description="Values beyond the expected ones, when exact.")
    message: str | None = None


class DnsCheckOutput(ActionOutput):
    ok: bool = Field(description="Every type answered, with every expected value.")
    name: str
    nameservers: list[str]
    problems: list[str]
    answers: list[DnsAnswer]


@action(
    "net.dns.check",
    version=1,
    title="DNS check",
    description=(
        "Asks for DNS records, compares them with what is expected and measures the time. Reports what is wrong; fails "
        "only when told to."
    ),
    permission="net.dns",
    timeout_s=900,
    modes={"sync", "async"},
    agent_tool=True,
)
def dns_check(ctx: Context, input: DnsCheckInput) -> DnsCheckOutput:
    """Look up every type and compare."""
    resolver = _resolver(input)
    answers = []
    for index, kind in enumerate(dict.fromkeys(input.types)):
        ctx.raise_if_cancelled()
        ctx.progress(index, len(input.types), "looking up", kind)
        answers.append(_compare(input, _ask(resolver, input, kind)))
    problems = [problem for answer in answers if (problem := _problem(input, answer))]
    output = DnsCheckOutput(
        ok=not problems,
        name=input.name,
        nameservers=[str(server) for server in resolver.nameservers],
        problems=problems,
        answers=answers,
    )
    if problems and input.fail_when_wrong:
        raise ActionError("CHECK_FAILED", "; ".join(problems), retryable=False, details=output.model_dump(mode="json"))
    return output


def split_server(text: str) -> tuple[str, int]:
    """Host and port of ``host``, ``host:port``, an IPv6 address or ``[address]:port``. Raises ValueError."""
    try:
        return str(ipaddress.IPv6Address(text)), 53
    except ValueError:
        pass
    match = _NAMESERVER.fullmatch(text)
    port = int(match.group("port") or 53) if match else 0
    if not match or not 0 < port <= 65_535:
        raise ValueError("must be a host or an address, with an optional port, like 192.0.2.53:5353")
    return match.group("six") or match.group("host"), port


def _resolver(wanted: DnsCheckInput) -> dns.resolver.Resolver:
    if wanted.nameserver is None:
        try:
            return dns.resolver.Resolver()
        except dns.resolver.NoResolverConfiguration as error:
            raise ActionError(
                "NO_NAMESERVER", "this machine names no DNS server; give nameserver", retryable=False
            ) from error
    host, port = split_server(wanted.nameserver)
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers = [outbound.checked_address(host, port)]
    resolver.port = port
    return resolver


def _ask(resolver: dns.resolver.Resolver, wanted: DnsCheckInput, kind: RecordType) -> DnsAnswer:
    name = _question(wanted.name, kind)
    started = time.monotonic()

    def done(state: AnswerState, message: str | None = None, **found: Any) -> DnsAnswer:
        elapsed_ms = round((time.monotonic() - started) * 1000, 2)
        return DnsAnswer(type=kind, state=state, elapsed_ms=elapsed_ms, message=message, **found)

    try:
        answer = resolver.resolve(name, kind, lifetime=wanted.timeout_s, raise_on_no_answer=False, search=False)
    except dns.resolver.NXDOMAIN:
        return done("nxdomain", f"{wanted.name} does not exist")
    except dns.exception.Timeout:
        return done("timeout", f"no answer within {wanted.timeout_s:g} s")
    except dns.resolver.NoNameservers as error:
        return done("server_failure", str(error)[:500])
    except (dns.exception.DNSException, OSError) as error:
        return done("server_failure", f"{type(error).__name__}: {error}"[:500])
    canonical = str(answer.canonical_name).rstrip(".")
    canonical_name = canonical if answer.canonical_name != answer.qname else None
    if answer.rrset is None:
        return done("no_records", f"{wanted.name} has no {kind} records", canonical_name=canonical_name)
    values = sorted(shown(kind, record) for record in answer.rrset)
    return done("ok", values=values, ttl_s=answer.rrset.ttl, canonical_name=canonical_name)


def _question(name: str, kind: str) -> dns.name.Name:
    if kind == "PTR":
        try:
            return dns.reversename.from_address(name)
        except dns.exception.SyntaxError:
            pass
    return dns.name.from_text(name)


def shown(kind: str, record: Any) -> str:
    """A record as people write it: no trailing dot, TXT joined and without quotes."""
    if kind == "TXT":
        return b"".join(record.strings).decode("utf-8", "replace")
    return canonical(kind, record.to_text())


def canonical(kind: str, text: str) -> str:
    """One spelling for comparing: addresses as addresses, names in lower case without trailing dots."""
    if kind in {"A", "AAAA"}:
        try:
            return str(ipaddress.ip_address(text.strip()))
        except ValueError:
            return text.strip()
    if kind in {"TXT", "CAA", "DS", "DNSKEY", "TLSA", "HTTPS"}:
        return text
    return " ".join(part.rstrip(".").lower() or "." for part in text.split())


def _compare(wanted: DnsCheckInput, answer: DnsAnswer) -> DnsAnswer:
    expected = {canonical(answer.type, text) for text in wanted.expect.get(answer.type, [])}
    found = set(answer.values)
    unexpected = sorted(found - expected) if wanted.exact and answer.type in wanted.expect else []
    return answer.model_copy(update={"missing": sorted(expected - found), "unexpected": unexpected})


def _problem(wanted: DnsCheckInput, answer: DnsAnswer) -> str | None:
    # Expecting an empty list says that there must be no records of this type.
    if answer.state == "no_records" and wanted.expect.get(answer.type) == []:
        return None
    if answer.state != "ok":
        return f"{answer.type}: {answer.message}"
    parts = [f"missing {', '.join(answer.missing)}"] if answer.missing else []
    parts += [f"unexpected {', '.join(answer.unexpected)}"] if answer.unexpected else []
    return f"{answer.type}: {'; '.join(parts)}" if parts else None
