"""Which addresses an action may talk to, decided on the address itself and never on how somebody spelled it.

Three kinds: *public* is always allowed; *private* (loopback, private networks, carrier NAT, test networks) is allowed
when the policy says so, which it does in development; *forbidden* (link-local with the metadata services of clouds,
multicast, unspecified, reserved) is never allowed, because no action has business there.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from typing import Literal

from tasks_app.domain.errors import ActionError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Kind = Literal["public", "private", "forbidden"]
# (host, port) -> addresses as text; raises OSError (socket.gaierror) when the name does not resolve.
Resolver = Callable[[str, int], list[str]]

_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")
# What the C library reads as an IPv4 address: one to four parts, each decimal, octal or hexadecimal.
_NUMERIC_HOST = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?")
_RANK: dict[Kind, int] = {"public": 0, "private": 1, "forbidden": 2}


def kind_of(address: IPAddress) -> Kind:
    """The kind of ``address``; an IPv6 address that carries an IPv4 one is judged by what it carries."""
    carried = _carried_ipv4(address)
    if carried:
        return max((_plain_kind(inner) for inner in carried), key=_RANK.__getitem__)
    return _plain_kind(address)


def _carried_ipv4(address: IPAddress) -> list[IPAddress]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address.sixtofour:
        return [address.sixtofour]
    if address.teredo:
        return list(address.teredo)
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return []


def _plain_kind(address: IPAddress) -> Kind:
    if address.is_loopback:
        return "private"
    if (
        address in _METADATA
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
    ):
        return "forbidden"
    if not address.is_global or (address.version == 6 and address in _SITE_LOCAL):
        return "private"
    return "public"


def literal(host: str) -> IPAddress | None:
    """The address ``host`` spells, in any spelling a C library would take (``2130706433``, ``0x7f.1``, ``[::1]``).

    None when ``host`` is a name. Raises `ActionError` ADDRESS_REFUSED for a number that is no address.
    """
    bare = host.strip("[]").split("%", 1)[0]
    if _NUMERIC_HOST.fullmatch(bare):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(bare.rstrip(".")))
        except OSError:
            raise _refused(host, f"{host} is not a valid IPv4 address") from None
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return None


def system_resolver(host: str, port: int) -> list[str]:
    """Every address the system's resolver gives for ``host``, in its order of preference."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that is empty or longer than 63 characters
        raise socket.gaierror(socket.EAI_NONAME, f"{host[:255]} is not a host name: {error}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def checked_addresses(host: str, port: int, *, allow_private: bool, resolver: Resolver) -> list[str]:
    """The addresses of ``host`` that may be connected to, as text.

    One refused address refuses the name: a mixed answer is how a rebinding attack begins. Raises `ActionError`
    ADDRESS_REFUSED, or what the resolver raises when the name is unknown.
    """
    spelled = literal(host)
    answers = [str(spelled)] if spelled is not None else resolver(host, port)
    if not answers:
        raise socket.gaierror(socket.EAI_NONAME, f"no address for {host}")
    for answer in answers:
        refuse_unless_allowed(host, answer, allow_private=allow_private)
    return answers


def refuse_unless_allowed(host: str, address: str, *, allow_private: bool) -> None:
    """Raise `ActionError` ADDRESS_REFUSED unless ``address`` (which ``host`` resolved to) may be connected to."""
    try:
        kind = kind_of(ipaddress.ip_address(address.split("%", 1)[0]))
    except ValueError:
        raise _refused(host, f"{host} resolved to {address!r}, which is not an address") from None
    if kind == "public" or (kind == "private" and allow_private):
        return
    where = host if host.strip("[]") == address else f"{host} ({address})"
    if kind == "private":
        hint = "Private and loopback addresses are allowed with DEVOS_ALLOW_PRIVATE_ADDRESSES=1 only."
    else:
        hint = "Link-local, multicast, unspecified and reserved addresses are never allowed."
    raise _refused(host, f"{where} may not be called. {hint}")


def _refused(host: str, message: str) -> ActionError:
    return ActionError("ADDRESS_REFUSED", message, retryable=False, details={"host": host[:255]})
