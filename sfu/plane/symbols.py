"""Where libsrtp and libcrypto are: both live in pylibsrtp's own shared object, so that nothing needs to be linked.

The wheel of pylibsrtp exports every symbol of both. Other builds may hide them: then the few functions of libsrtp that
its Python binding itself uses are taken from there, and GCM goes through libsrtp too, at twice the cost.
"""

from __future__ import annotations

import ctypes
import logging

from pylibsrtp import _binding

from shared.errors import SluiceError

log = logging.getLogger("sfu.media")

LIBSRTP = (
    "srtp_protect",
    "srtp_unprotect",
    "srtp_protect_rtcp",
    "srtp_unprotect_rtcp",
    "srtp_add_stream",
    "srtp_remove_stream",
)
LIBSRTP_UNBOUND = ("srtp_set_stream_roc",)
"""Not of pylibsrtp's binding, so that another build may hide it: then a stream that is first heard after its sequence
numbers have wrapped is not understood."""
LIBCRYPTO = (
    "EVP_CIPHER_CTX_new",
    "EVP_CIPHER_CTX_free",
    "EVP_CIPHER_CTX_ctrl",
    "EVP_aes_128_gcm",
    "EVP_aes_256_gcm",
    "EVP_aes_128_ctr",
    "EVP_aes_256_ctr",
    "EVP_EncryptInit_ex",
    "EVP_EncryptUpdate",
    "EVP_EncryptFinal_ex",
    "EVP_DecryptInit_ex",
    "EVP_DecryptUpdate",
    "EVP_DecryptFinal_ex",
)


class CryptoNotFound(SluiceError, ImportError):
    """Functions that the compiled plane needs are not in this pylibsrtp: the reference plane has to do."""

    code = "crypto-not-found"

    def __init__(self, *, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def sentence(self) -> str:
        return f"pylibsrtp has no {', '.join(self.names)}"


def find_symbols() -> dict[str, int]:
    """Name -> address of all of `LIBSRTP`, and of all or nothing of `LIBSRTP_UNBOUND` and of `LIBCRYPTO`.

    Raises `CryptoNotFound`.
    """
    found = _exported(LIBSRTP) or _bound(LIBSRTP)
    crypto = _exported(LIBCRYPTO)
    if not crypto:
        log.warning("[media] pylibsrtp does not export libcrypto: AES-GCM goes through libsrtp, at twice the cost")
    return found | _exported(LIBSRTP_UNBOUND) | crypto


def _exported(names: tuple[str, ...]) -> dict[str, int]:
    """Empty unless the shared object exports them all."""
    try:
        library = ctypes.CDLL(_binding.__file__)
        functions = {name: getattr(library, name) for name in names}
    except (OSError, AttributeError):
        return {}
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in functions.items()}


def _bound(names: tuple[str, ...]) -> dict[str, int]:
    """From the binding's own table."""
    missing = [name for name in names if not hasattr(_binding.lib, name)]
    if missing:
        raise CryptoNotFound(names=missing)
    ffi, lib = _binding.ffi, _binding.lib
    return {name: int(ffi.cast("uintptr_t", ffi.addressof(lib, name))) for name in names}
