"""Every wire message of Sluice, protocol version 1: one module a connection, one union a direction.

`player` is what passes between a player and its router, `media` between a player and an SFU, `link` between an SFU and
a router. All travel as JSON text frames with the tag in `type`. New fields must have defaults; a released field never
changes its meaning (requirement D9).
"""

PROTOCOL_VERSION = 1
"""What this release speaks."""
OLDEST_VERSION = 1
"""The oldest version that this release still speaks."""
