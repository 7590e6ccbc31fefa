"""The lease of the one controller that may scale, with a fencing token that only grows (A7)."""

from __future__ import annotations

from shared.store.answers import Leader, Term
from shared.store.calls import Calls, text

TOKEN_DIGITS = 16
"""A token is a time in milliseconds (13 digits until the year 2286), or what a wrong clock made of it."""
MOST_TOKEN = 2**51
"""Half of what scripts count with. A greater one was never given out, and is not counted as one: the next token would
have to exceed it, and soon there would be none."""


class ScalingLease(Calls):
    """Takes, renews and gives back the lease."""

    async def take_lease(self, controller: str, *, token: int, lease_s: float, seen: int = 0) -> Term:
        """Take the lease if it is free, or renew it when `token` is the one it was taken with.

        `token` is 0 for a controller that leads not; `seen` is the greatest token it has ever heard of, which a new one
        exceeds even when the server has lost its data and its clock went back. A new token is at least the server's
        time [Unix ms], so it exceeds those that controllers of the past have shown to SFUs. Raises `WrongType` when one
        of the keys holds something else.
        """
        keys = [self.keys.scaling_lease, self.keys.scaling_token]
        answer = await self._run("take_lease", keys, controller, token, round(lease_s * 1000), seen)
        mine, holder, held, left_ms = answer
        return Term(bool(mine), leader(holder, held, left_ms))

    async def release_lease(self, controller: str, token: int) -> bool:
        """Give the lease back, so that another need not wait for its end; False when it was not ours."""
        return bool(await self._run("release_lease", [self.keys.scaling_lease], controller, token))


def leader(controller: bytes, token: bytes, left_ms: int) -> Leader:
    """A leader from what a script answers; a token that is no number, or beyond any that is given out, reads as 0."""
    word = text(token)
    number = int(word) if word.isdecimal() and len(word) <= TOKEN_DIGITS else 0
    return Leader(text(controller), number if number <= MOST_TOKEN else 0, max(0, left_ms) / 1000)
