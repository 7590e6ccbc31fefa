"""Text to `SessionDescription`. The text is hostile: everything is bounded, and only `BadSdp` ever escapes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from shared.errors import BadSdp
from shared.rtc.sdp_model import (
    Candidate,
    Codec,
    Direction,
    Extension,
    Fingerprint,
    MediaSection,
    Rid,
    SessionDescription,
    Ssrc,
)

MAX_CHARS = 200 * 1024
"""Longest description read; fits the 256 KiB frame of the protocol and some 200 m-lines of a browser's answer."""
MAX_LINES = 10_000
MAX_MEDIA = 200
"""Most m-lines: publications a player can subscribe to on one connection."""
MAX_ITEMS = 64
"""Most codecs, extensions, SSRCs, candidates of one m-line; Chromium's longest list has 23."""
MAX_RIDS = 8
"""Most simulcast encodings of one m-line; browsers use three."""

_EOL = re.compile(r"\r\n|\n|\r")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,64}")
_RID = re.compile(r"[A-Za-z0-9_-]{1,16}")
_ICE = re.compile(r"[A-Za-z0-9+/=_-]{4,256}")  # the last three are not ice-chars, but seen in the wild
_HASH = re.compile(r"[0-9A-F]{2}(:[0-9A-F]{2}){15,63}")
_PT = re.compile(r"[0-9]{1,3}")
_RTPMAP = re.compile(r"([A-Za-z0-9.+_-]{1,32})/([0-9]{1,9})(?:/([0-9]{1,2}))?")


@dataclass(slots=True)
class _Draft:
    """A section being read. It changes with each line, so it is a dict; `_finish` makes the frozen section of it."""

    values: dict[str, Any] = field(default_factory=dict)
    """Fields of the `MediaSection`; those that are tuples there are lists here."""
    payload_types: dict[int, None] = field(default_factory=dict)
    """The payload types of the m-line, in its order."""
    codecs: dict[int, Codec] = field(default_factory=dict)
    fmtp: dict[int, str] = field(default_factory=dict)
    feedback: dict[int, list[str]] = field(default_factory=dict)
    feedback_all: list[str] = field(default_factory=list)
    ssrcs: dict[int, Ssrc] = field(default_factory=dict)
    bundle: tuple[str, ...] = ()
    ice_lite: bool = False

    def append(self, name: str, item: object, limit: int = MAX_ITEMS) -> None:
        items: list[object] = self.values.setdefault(name, [])
        if len(items) >= limit:
            raise BadSdp(detail=f"more than {limit} {name} in one m-line")
        items.append(item)


def parse(text: str) -> SessionDescription:
    """The description in `text`. Raises `BadSdp`, whose detail says what is wrong and in which line."""
    if len(text) > MAX_CHARS:
        raise BadSdp(detail=f"longer than {MAX_CHARS} characters")
    lines = [line.strip(" ") for line in _EOL.split(text, MAX_LINES)]
    if len(lines) > MAX_LINES:
        raise BadSdp(detail=f"more than {MAX_LINES} lines")
    if lines[0] != "v=0":
        raise BadSdp(detail="does not begin with v=0")
    session = _Draft({"kind": "session"})
    drafts = [session]
    origin = ("1", 1)
    for number, line in enumerate(lines, 1):
        try:
            if line.startswith("m="):
                drafts.append(_begin(line[2:], count=len(drafts)))
            elif line.startswith("a="):
                _attribute(drafts[-1], line[2:])
            elif line.startswith("o="):
                origin = _origin(line[2:])
            elif line and not (line[0].isalpha() and line[1:2] == "="):
                raise BadSdp(detail="no `letter=value`")
        except BadSdp as error:
            raise BadSdp(detail=f"line {number}: {error.detail}") from None
    media = tuple(_finish(draft, session) for draft in drafts[1:])
    _check_mids(media)
    return SessionDescription(
        media=media, bundle=session.bundle, ice_lite=session.ice_lite, session_id=origin[0], version=origin[1]
    )


def _number(text: str, what: str, high: int, low: int = 0) -> int:
    """A decimal number within bounds; `int` alone would take signs, underscores and the digits of any script."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20) or not low <= int(text) <= high:
        raise BadSdp(detail=f"{what} is no number from {low} to {high}")
    return int(text)


def _matched(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise BadSdp(detail=f"bad {what}")
    return text


def _origin(value: str) -> tuple[str, int]:
    parts = value.split()
    if len(parts) < 3:
        raise BadSdp(detail="short o= line")
    return _matched(re.compile(r"[0-9]{1,20}"), parts[1], "session id"), _number(parts[2], "session version", 2**64)


def _begin(value: str, *, count: int) -> _Draft:
    if count > MAX_MEDIA:
        raise BadSdp(detail=f"more than {MAX_MEDIA} m-lines")
    parts = value.split()
    if len(parts) < 4:
        raise BadSdp(detail="short m-line")
    kind, port, protocol, *formats = parts
    if len(formats) > MAX_ITEMS:
        raise BadSdp(detail=f"more than {MAX_ITEMS} formats in one m-line")
    values = {
        "kind": _matched(_TOKEN, kind, "media kind"),
        "port": _number(port.partition("/")[0], "port", 65535),
        "protocol": protocol[:64],
        "formats": formats,
    }
    known = {pt: None for name in formats if _PT.fullmatch(name) and (pt := int(name)) < 128}
    return _Draft(values, payload_types=known)


def _attribute(draft: _Draft, text: str) -> None:
    name, _, value = text.partition(":")
    flag = _FLAGS.get(name)
    if flag is not None:
        draft.values |= flag
    elif (read := _READERS.get(name)) is not None:
        read(draft, value.strip())


def _finish(draft: _Draft, session: _Draft) -> MediaSection:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in draft.values.items()
    }
    for name in ("ufrag", "pwd", "setup", "fingerprints"):
        if not values.get(name) and (outer := session.values.get(name)):
            values[name] = tuple(outer) if isinstance(outer, list) else outer
    values["codecs"] = tuple(
        replace(
            draft.codecs[pt],
            fmtp=draft.fmtp.get(pt, ""),
            feedback=(*draft.feedback.get(pt, ()), *draft.feedback_all),
        )
        for pt in draft.payload_types
        if pt in draft.codecs
    )
    return MediaSection(**values, ssrcs=tuple(draft.ssrcs.values()))


def _check_mids(media: tuple[MediaSection, ...]) -> None:
    mids = [section.mid for section in media if section.mid]
    if len(mids) != len(set(mids)):
        raise BadSdp(detail="a mid is used twice")


def _group(draft: _Draft, value: str) -> None:
    kind, *mids = value.split() or [""]
    if kind == "BUNDLE" and not draft.bundle:
        draft.bundle = tuple(mids[: MAX_MEDIA + 1])


def _ice_lite(draft: _Draft, value: str) -> None:
    draft.ice_lite = True


def _fingerprint(draft: _Draft, value: str) -> None:
    algorithm, _, digest = value.partition(" ")
    digest = _matched(_HASH, digest.strip().upper(), "fingerprint")
    item = Fingerprint(_matched(_TOKEN, algorithm, "fingerprint algorithm").lower(), digest)
    draft.append("fingerprints", item, 8)


def _setup(draft: _Draft, value: str) -> None:
    if value not in ("active", "passive", "actpass", "holdconn"):
        raise BadSdp(detail="bad setup")
    draft.values["setup"] = value


def _payload_type(draft: _Draft, text: str) -> int | None:
    """The payload type, or None when its m-line does not list it, as some writers do."""
    pt = _number(text, "payload type", 127)
    return pt if pt in draft.payload_types else None


def _rtpmap(draft: _Draft, value: str) -> None:
    number, _, encoding = value.partition(" ")
    match = _RTPMAP.fullmatch(encoding.strip())
    if match is None:
        raise BadSdp(detail="bad rtpmap")
    pt = _payload_type(draft, number)
    if pt is not None:
        draft.codecs[pt] = Codec(pt=pt, name=match[1], clock=int(match[2]), channels=int(match[3] or 1))


def _fmtp(draft: _Draft, value: str) -> None:
    number, _, parameters = value.partition(" ")
    if not number.isdigit():
        return  # data channels of old writers name their format here
    pt = _payload_type(draft, number)
    if pt is not None:
        draft.fmtp[pt] = parameters.strip()[:1024]


def _rtcp_fb(draft: _Draft, value: str) -> None:
    number, _, kind = value.partition(" ")
    if number == "*":
        items = draft.feedback_all
    else:
        pt = _payload_type(draft, number)
        if pt is None:
            return
        items = draft.feedback.setdefault(pt, [])
    if len(items) >= 16:
        raise BadSdp(detail="more than 16 rtcp-fb of one payload type")
    items.append(" ".join(kind.split())[:64])


def _extmap(draft: _Draft, value: str) -> None:
    number, _, uri = value.partition(" ")
    number, _, direction = number.partition("/")
    id_ = _number(number, "extension id", 255, 1)
    uri = uri.strip().partition(" ")[0]
    if not uri or len(uri) > 256:
        raise BadSdp(detail="bad extension URI")
    draft.append("extensions", Extension(id=id_, uri=uri, direction=direction[:8]))


def _rid(draft: _Draft, value: str) -> None:
    rid, direction, *_ = (*value.split(), "", "")
    if direction not in ("send", "recv"):
        raise BadSdp(detail="a rid has no direction")
    draft.append("rids", Rid(rid=_matched(_RID, rid, "rid"), direction=direction), MAX_RIDS)


def _simulcast(draft: _Draft, value: str) -> None:
    words = value.split()
    for direction, names in zip(words[::2], words[1::2], strict=False):
        if direction not in ("send", "recv"):
            raise BadSdp(detail="bad simulcast")
        first = [name.partition(",")[0].removeprefix("~") for name in names.split(";")]
        if len(first) > MAX_RIDS:
            raise BadSdp(detail=f"more than {MAX_RIDS} simulcast encodings")
        draft.values[f"simulcast_{direction}"] = tuple(_matched(_RID, rid, "rid") for rid in first)


def _ssrc(draft: _Draft, value: str) -> None:
    number, _, attribute = value.partition(" ")
    ssrc = _number(number, "SSRC", 2**32 - 1)
    if ssrc not in draft.ssrcs and len(draft.ssrcs) >= MAX_ITEMS:
        raise BadSdp(detail=f"more than {MAX_ITEMS} SSRCs in one m-line")
    known = draft.ssrcs.setdefault(ssrc, Ssrc(ssrc=ssrc))
    name, _, content = attribute.strip().partition(":")
    if name == "cname":
        draft.ssrcs[ssrc] = replace(known, cname=content[:256])
    elif name == "msid":
        draft.ssrcs[ssrc] = replace(known, msid=content[:256])


def _ssrc_group(draft: _Draft, value: str) -> None:
    kind, *numbers = value.split() or [""]
    if kind == "FID" and len(numbers) == 2:
        pair = (_number(numbers[0], "SSRC", 2**32 - 1), _number(numbers[1], "SSRC", 2**32 - 1))
        draft.append("fid_groups", pair)


def _extension_of(parts: list[str], name: str) -> str:
    """The value of a candidate's extension attribute; empty without it."""
    extensions = dict(zip(parts[8::2], parts[9::2], strict=False))
    return extensions.get(name, "")[:16]


def _candidate(draft: _Draft, value: str) -> None:
    """A candidate we can't read is one we can't use, not an error (RFC 8839 section 5.1)."""
    parts = value.split()
    if len(parts) < 8 or parts[6] != "typ":
        return
    numbers = (parts[1], parts[3], parts[5])
    if not all(text.isascii() and text.isdigit() and len(text) <= 10 for text in numbers):
        return
    component, priority, port = (int(text) for text in numbers)
    if port > 65535:
        return
    draft.append(
        "candidates",
        Candidate(
            foundation=parts[0][:32],
            component=component,
            transport=parts[2].lower()[:16],
            priority=priority,
            ip=parts[4][:256],
            port=port,
            type=parts[7][:16],
            tcptype=_extension_of(parts, "tcptype"),
        ),
    )


def _ptime(draft: _Draft, value: str) -> None:
    """Only a wish: one that no codec can keep to is passed over (Opus makes packets of up to 120 ms)."""
    if value.isascii() and value.isdigit() and len(value) <= 3 and 1 <= int(value) <= 120:
        draft.values["ptime_ms"] = int(value)


def _setter(name: str, check: Callable[[str], Any]) -> Callable[[_Draft, str], None]:
    def read(draft: _Draft, value: str) -> None:
        draft.values[name] = check(value)

    return read


_FLAGS: dict[str, dict[str, Any]] = {
    **{direction.value: {"direction": direction} for direction in Direction},
    "rtcp-mux": {"rtcp_mux": True},
    "rtcp-rsize": {"rtcp_rsize": True},
    "bundle-only": {"bundle_only": True},
    "end-of-candidates": {"end_of_candidates": True},
}
_READERS: dict[str, Callable[[_Draft, str], None]] = {
    "group": _group,
    "ice-lite": _ice_lite,
    "mid": _setter("mid", lambda value: _matched(_TOKEN, value, "mid")),
    "ice-ufrag": _setter("ufrag", lambda value: _matched(_ICE, value, "ice-ufrag")),
    "ice-pwd": _setter("pwd", lambda value: _matched(_ICE, value, "ice-pwd")),
    "msid": _setter("msid", lambda value: " ".join(value.split())[:256]),
    "sctp-port": _setter("sctp_port", lambda value: _number(value, "sctp-port", 65535)),
    "fingerprint": _fingerprint,
    "setup": _setup,
    "rtpmap": _rtpmap,
    "fmtp": _fmtp,
    "rtcp-fb": _rtcp_fb,
    "extmap": _extmap,
    "rid": _rid,
    "simulcast": _simulcast,
    "ssrc": _ssrc,
    "ssrc-group": _ssrc_group,
    "candidate": _candidate,
    "ptime": _ptime,
}
