"""A self-signed certificate in files, for ports that speak TLS."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shared.front.settings import FrontSettings


def write_certificate(place: Path, name: str) -> FrontSettings:
    """Self-signed, for 127.0.0.1; the files are replaced as renewals do it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    for file, content in (("cert.pem", built.public_bytes(pem)), ("key.pem", key.private_bytes(pem, form, none))):
        (place / f"new-{file}").write_bytes(content)
        (place / f"new-{file}").replace(place / file)
    return FrontSettings(trusted_proxies=(), tls_cert=str(place / "cert.pem"), tls_key=str(place / "key.pem"))


def trusting() -> ssl.SSLContext:
    """A client's context that takes any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
