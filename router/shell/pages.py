"""The pages of the `web` package, at `/`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from aiohttp import web

CONTENT_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
"""What is served; every other file of the package is not."""
HEADERS = {
    "Cache-Control": "no-cache",  # revalidated by ETag each time, so that a deploy is seen at once
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
CSP = (
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; worker-src 'self'; "
    "connect-src 'self' http: https: ws: wss:"
)
"""For pages: code comes from here and nowhere else, whatever a name from the network holds. Connections may go
anywhere: players go to any SFU, and the fleet page asks every router."""
LIBRARY = "lib"
OF_THE_LIBRARY = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
"""The client library may be imported by an app of any origin: it is public code and answers no cookie."""
NOT_FRAMED = "'none'"
NEVER_FRAMED = {"fleet.html"}
"""Pages with buttons that act on the fleet: no other page may put them in a frame and lead clicks there."""


def web_root() -> Path | None:
    """Where the pages are; None when the package is not installed."""
    spec = find_spec("web")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]).resolve() if locations else None


class Pages:
    """Serves files below one folder, and nothing above it."""

    def __init__(self, root: Path | None, *, framed_by: Iterable[str] = ()) -> None:
        """`framed_by`: origins whose pages may put ours into a frame; none by default."""
        self._root = root.resolve() if root else None
        self._framed_by = " ".join(origin for origin in framed_by if "://" in origin)

    def add_to(self, app: web.Application) -> None:
        """Add the routes; after all others, since they match everything."""
        app.add_routes([web.get("/", self._page), web.get("/{path:.+}", self._page)])

    async def _page(self, request: web.Request) -> web.StreamResponse:
        file = self.find(request.match_info.get("path", "index.html"))
        if file is None:
            raise web.HTTPNotFound(text="not here\n")
        response = web.FileResponse(file, headers=HEADERS)
        response.content_type = CONTENT_TYPES[file.suffix]
        if file.suffix in (".html", ".js", ".css"):
            response.charset = "utf-8"
        if self._root is not None and file.is_relative_to(self._root / LIBRARY):
            response.headers.update(OF_THE_LIBRARY)
        if file.suffix == ".html":
            framed_by = "" if file.name in NEVER_FRAMED else self._framed_by
            response.headers["Content-Security-Policy"] = f"{CSP}; frame-ancestors {framed_by or NOT_FRAMED}"
            if not framed_by:
                response.headers["X-Frame-Options"] = "DENY"
        return response

    def find(self, path: str) -> Path | None:
        """The file for `path`, if it is one of the kinds served and below the folder, links followed."""
        if self._root is None or "\0" in path or len(path) > 512:
            return None
        try:
            file = (self._root / path).resolve()
            if file.is_dir():
                file = file / "index.html"
            if not file.is_relative_to(self._root) or file.suffix not in CONTENT_TYPES or not file.is_file():
                return None
        except OSError:
            return None
        return file
