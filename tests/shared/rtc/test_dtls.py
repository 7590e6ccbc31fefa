"""DTLS between two of our transports, every way it can fail, and the contract with aiortc's private names."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from aiortc import rtcdtlstransport
from aiortc.rtcdtlstransport import RTCCertificate, RTCDtlsTransport
from OpenSSL import SSL

from shared.rtc.dtls import (
    MTU,
    PREFERRED_PROFILES,
    Certificate,
    DtlsFailed,
    DtlsFailure,
    DtlsTransport,
    process_certificate,
    split_flight,
)
from shared.rtc.srtp import SrtpKeys, SrtpProfile


class Wire:
    """Two transports joined by the event loop. `drop` says which datagrams, by number, get lost on the way."""

    def __init__(
        self,
        *,
        client_profiles: tuple[SrtpProfile, ...] = PREFERRED_PROFILES,
        server_profiles: tuple[SrtpProfile, ...] = PREFERRED_PROFILES,
        drop: frozenset[int] = frozenset(),
    ) -> None:
        loop = asyncio.get_running_loop()
        self.sent: list[bytes] = []
        self.ended: list[str] = []
        self.client_certificate = Certificate.generateCertificate()

        def carry(datagram: bytes, to: str) -> None:
            self.sent.append(datagram)
            if len(self.sent) - 1 not in drop:
                loop.call_soon(getattr(self, to).feed, datagram)

        self.server = DtlsTransport(
            send=lambda datagram: carry(datagram, "client"),
            role="server",
            profiles=server_profiles,
            on_closed=lambda: self.ended.append("server"),
        )
        self.client = DtlsTransport(
            send=lambda datagram: carry(datagram, "server"),
            role="client",
            certificate=self.client_certificate,
            profiles=client_profiles,
            on_closed=lambda: self.ended.append("client"),
        )

    async def shake(self, *, timeout_s: float = 20.0) -> tuple[SrtpKeys, SrtpKeys]:
        return await asyncio.gather(
            self.server.handshake([self.client_certificate.fingerprint], timeout_s=timeout_s),
            self.client.handshake([process_certificate().fingerprint], timeout_s=timeout_s),
        )


async def settle(wire: Wire, condition: str) -> None:
    async with asyncio.timeout(20):
        while condition not in wire.ended:  # noqa: ASYNC110 - a plain list tells it
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("profile", list(SrtpProfile))
async def test_both_ends_have_the_same_keys(profile: SrtpProfile) -> None:
    wire = Wire(client_profiles=(profile,))
    server, client = await wire.shake()
    assert server.profile is client.profile is profile
    assert (server.rx_key, server.rx_salt) == (client.tx_key, client.tx_salt)
    assert (server.tx_key, server.tx_salt) == (client.rx_key, client.rx_salt)
    assert server.rx_key != server.tx_key


async def test_server_prefers_gcm_128() -> None:
    server, _ = await Wire(client_profiles=tuple(reversed(PREFERRED_PROFILES))).shake()
    assert server.profile is SrtpProfile.AEAD_AES_128_GCM


async def test_lost_flights_are_repeated() -> None:
    await Wire(drop=frozenset({0, 2})).shake()


async def test_datagrams_that_come_before_the_handshake_are_kept() -> None:
    wire = Wire()
    client = asyncio.create_task(wire.client.handshake([process_certificate().fingerprint]))
    async with asyncio.timeout(20):
        while not wire.sent:  # noqa: ASYNC110 - a plain list tells it
            await asyncio.sleep(0.005)
    await wire.server.handshake([wire.client_certificate.fingerprint])
    await client


async def test_wrong_fingerprint_is_refused_and_the_peer_told() -> None:
    wire = Wire()
    stranger = Certificate.generateCertificate().fingerprint
    client = asyncio.create_task(wire.client.handshake([process_certificate().fingerprint]))
    with pytest.raises(DtlsFailed) as failed:
        await wire.server.handshake([stranger])
    assert failed.value.failure is DtlsFailure.FINGERPRINT
    assert wire.server.state == "failed"
    await client
    await settle(wire, "client")


@pytest.mark.parametrize("fingerprints", [[], [("sha-1", "AA:BB")]], ids=["none", "sha-1 only"])
async def test_a_digest_we_cannot_check_is_refused(fingerprints: list[tuple[str, str]]) -> None:
    wire = Wire()
    client = asyncio.create_task(wire.client.handshake([process_certificate().fingerprint]))
    with pytest.raises(DtlsFailed) as failed:
        await wire.server.handshake(fingerprints)
    assert failed.value.failure is DtlsFailure.FINGERPRINT
    await wire.client.close()
    await asyncio.gather(client, return_exceptions=True)


async def test_no_common_profile_is_refused() -> None:
    wire = Wire(client_profiles=(SrtpProfile.AES128_CM_SHA1_80,), server_profiles=(SrtpProfile.AEAD_AES_128_GCM,))
    client, server = await asyncio.gather(
        wire.client.handshake([process_certificate().fingerprint]),
        wire.server.handshake([wire.client_certificate.fingerprint]),
        return_exceptions=True,
    )
    assert isinstance(server, DtlsFailed)
    assert server.failure is DtlsFailure.PROFILE
    assert isinstance(client, DtlsFailed)
    assert client.failure is DtlsFailure.PROFILE


async def test_silent_peer_times_out() -> None:
    transport = DtlsTransport(send=lambda _: None, role="client")
    with pytest.raises(DtlsFailed) as failed:
        await transport.handshake([process_certificate().fingerprint], timeout_s=0.05)
    assert failed.value.failure is DtlsFailure.TIMEOUT


async def test_garbage_does_not_end_a_handshake() -> None:
    wire = Wire()
    for datagram in (b"", b"\x16", b"\x16" * 13, b"\x16\xfe\xfd" + bytes(60), b"\x80" * 40):
        wire.server.feed(datagram)
        wire.client.feed(datagram)
    await wire.shake()


async def test_closing_during_the_handshake_raises_closed() -> None:
    transport = DtlsTransport(send=lambda _: None)
    handshake = asyncio.create_task(transport.handshake([process_certificate().fingerprint]))
    await asyncio.sleep(0)
    await transport.close()
    with pytest.raises(DtlsFailed) as failed:
        await handshake
    assert failed.value.failure is DtlsFailure.CLOSED


async def test_close_is_heard_by_the_peer_and_safe_twice() -> None:
    wire = Wire()
    await wire.shake()
    await wire.client.close()
    await wire.client.close()
    await settle(wire, "server")
    assert wire.ended == ["server"]
    await wire.server.close()


async def test_contexts_are_made_once_per_certificate() -> None:
    certificate = Certificate.generateCertificate()
    profiles = rtcdtlstransport.SRTP_PROFILES
    first = certificate._create_ssl_context(profiles)
    assert certificate._create_ssl_context(list(profiles)) is first
    assert certificate._create_ssl_context(profiles[:1]) is not first


def record(size: int, kind: int = 22) -> bytes:
    return bytes((kind, 254, 253)) + bytes(8) + size.to_bytes(2, "big") + bytes(size)


@pytest.mark.parametrize(
    ("flight", "sizes"),
    [
        (b"", []),
        (record(100), [113]),
        (record(500) + record(500), [1026]),
        (record(800) + record(800) + record(100), [813, 926]),
        (record(1500) + record(100), [1513, 113]),
        (record(100, kind=0x2F), [113]),
        (record(100) + b"\x16", [114]),
    ],
    ids=["nothing", "one", "together", "cut between records", "a long one alone", "DTLS 1.3", "cut tail"],
)
def test_flights_are_cut_between_records(flight: bytes, sizes: list[int]) -> None:
    datagrams = split_flight(flight)
    assert [len(datagram) for datagram in datagrams] == sizes
    assert b"".join(datagrams) == flight
    assert MTU == 1200


WHAT_TO_DO = (
    "aiortc no longer has {name}. shared/rtc/dtls.py builds on it: read aiortc's rtcdtlstransport.py of the new "
    "version, move the adapter to what replaced it, then change this list and the pin in pyproject.toml."
)


@pytest.mark.parametrize("name", ["_set_role", "_setup_srtp", "_validate_peer_identity", "_write_ssl", "_set_state"])
def test_contract_methods(name: str) -> None:
    assert callable(getattr(RTCDtlsTransport, name, None)), WHAT_TO_DO.format(name=f"RTCDtlsTransport.{name}")


def test_contract_signatures() -> None:
    parameters = {
        "_validate_peer_identity": ["self", "remoteParameters"],
        "_setup_srtp": ["self"],
        "_write_ssl": ["self"],
        "_set_role": ["self", "role"],
        "_set_state": ["self", "state"],
    }
    for name, expected in parameters.items():
        method = getattr(RTCDtlsTransport, name)
        assert list(inspect.signature(method).parameters) == expected, WHAT_TO_DO.format(name=f"{name}{expected}")
    assert inspect.iscoroutinefunction(RTCDtlsTransport._write_ssl)
    assert list(inspect.signature(RTCCertificate._create_ssl_context).parameters) == ["self", "srtp_profiles"]


async def test_contract_attributes() -> None:
    transport = DtlsTransport(send=lambda _: None)
    for name in ("_ssl", "_srtp_profiles", "_role", "_state"):
        assert name in vars(transport), WHAT_TO_DO.format(name=f"RTCDtlsTransport.{name}")
    handshake = asyncio.create_task(transport.handshake([process_certificate().fingerprint]))
    await asyncio.sleep(0)
    assert isinstance(transport._ssl, SSL.Connection), WHAT_TO_DO.format(name="a pyOpenSSL connection in _ssl")
    await transport.close()
    await asyncio.gather(handshake, return_exceptions=True)


def test_contract_transport_uses_only_recv_send_and_role() -> None:
    source = inspect.getsource(RTCDtlsTransport)
    used = {part.split("(")[0].split("\n")[0].split(".")[0] for part in source.split("self.transport.")[1:]}
    used = {name.rstrip(",:) ").split(" ")[0].split(",")[0] for name in used}
    assert used == {"_recv", "_send", "role"}, WHAT_TO_DO.format(name="a transport with only _recv, _send and role")


def test_contract_states() -> None:
    assert [state.name for state in rtcdtlstransport.State] == ["NEW", "CONNECTING", "CONNECTED", "CLOSED", "FAILED"]
