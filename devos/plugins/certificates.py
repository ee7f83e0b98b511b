"""What a certificate says, in plain values."""

from __future__ import annotations

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.x509.oid import NameOID

_WEAK_HASHES = frozenset({"md5", "sha1"})
_RSA_BITS_MIN = 2048
_EC_BITS_MIN = 224


def load(der: bytes) -> x509.Certificate:
    """The certificate in ``der``. Raises ValueError."""
    return x509.load_der_x509_certificate(der)


def days_left(certificate: x509.Certificate) -> float:
    """Days until it expires, with a fraction; negative when it has."""
    left = certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return round(left.total_seconds() / 86_400, 2)


def not_yet_valid(certificate: x509.Certificate) -> bool:
    """Whether its time has not come."""
    return certificate.not_valid_before_utc > datetime.datetime.now(datetime.UTC)


def name_of(name: x509.Name) -> str:
    """The common name, or all of the name when it has none."""
    common = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(common[0].value) if common else name.rfc4514_string()


def names_of(certificate: x509.Certificate) -> list[str]:
    """The DNS names and addresses it is for. The common name is none of them: clients stopped reading it."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    except ValueError:  # extensions that cannot be parsed
        return []
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return list(names.get_values_for_type(x509.DNSName)) + addresses


def is_for(certificate: x509.Certificate, host: str) -> bool:
    """Whether ``host`` is one of its names; ``*.`` stands for one label."""
    wanted = host.strip("[]").rstrip(".").lower()
    try:
        address = str(ipaddress.ip_address(wanted))
    except ValueError:
        address = None
    for name in names_of(certificate):
        known = name.rstrip(".").lower()
        if address is not None:
            if known == address:
                return True
        elif known == wanted or (known.startswith("*.") and wanted.partition(".")[2] == known[2:] != ""):
            return True
    return False


def is_self_signed(certificate: x509.Certificate) -> bool:
    """Whether it was issued by itself."""
    return certificate.issuer == certificate.subject


def weaknesses(certificate: x509.Certificate) -> list[str]:
    """What is weak about its signature and key, in words."""
    found = []
    hashed = certificate.signature_hash_algorithm
    if hashed is not None and hashed.name in _WEAK_HASHES and not is_self_signed(certificate):
        found.append(f"signed with {hashed.name}")
    kind, bits = key_of(certificate)
    if (kind in {"RSA", "DSA"} and bits < _RSA_BITS_MIN) or (kind == "EC" and bits < _EC_BITS_MIN):
        found.append(f"{kind} key of {bits} bits")
    return found


def key_of(certificate: x509.Certificate) -> tuple[str, int]:
    """Kind and size of its key, in bits."""
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return "RSA", key.key_size
    if isinstance(key, dsa.DSAPublicKey):
        return "DSA", key.key_size
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "EC", key.key_size
    return type(key).__name__.strip("_").removesuffix("PublicKey"), 256


def signature_of(certificate: x509.Certificate) -> str:
    """The algorithm of its signature, like ``sha256`` or ``ed25519``."""
    hashed = certificate.signature_hash_algorithm
    return hashed.name if hashed is not None else certificate.signature_algorithm_oid._name
