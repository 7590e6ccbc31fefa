"""The pages written for people, read as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def name(page: Path) -> str:
    """The page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Line number and text of all lines outside code blocks."""
    in_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def links(text: str) -> list[str]:
    """Targets of all links and images outside code."""
    lines = "\n".join(line for _, line in prose(text))
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", lines))


def anchors(text: str) -> set[str]:
    """What a link to a heading of the page can name, as GitHub makes it of the heading."""
    titles = [re.sub(r"^#+ ", "", line).strip() for _, line in prose(text) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}
