"""The four dashboards."""

from __future__ import annotations

from dashboards.autoscaler import AUTOSCALER
from dashboards.drain import DRAIN
from dashboards.fleet import FLEET
from dashboards.media import MEDIA

ALL = {"fleet": FLEET, "drain": DRAIN, "autoscaler": AUTOSCALER, "media": MEDIA}
"""By the name of their files."""
