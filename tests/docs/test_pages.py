"""Pages for people: they fit a screen, say first what they are for, and name nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links, name, prose

MOST_COLUMNS = 120
PACKAGES = (
    "bench|cli|client_sim|control|deploy|docs|localfleet|operators|player|rehearse|router|scripts|sfu|shared|tests|web"
)

every_page = pytest.mark.parametrize("page", PAGES, ids=name)


def too_long(text: str) -> list[int]:
    """Numbers of the lines that a person would have to scroll to read; tables and code can't be wrapped."""
    lines = [(number, line) for number, line in prose(text) if not line.lstrip().startswith("|")]
    return [number for number, line in lines if len(line) > MOST_COLUMNS and " " in line.strip(" -")]


@every_page
def test_lines_are_wrapped(page: Path) -> None:
    assert too_long(page.read_text(encoding="utf-8")) == []


def test_the_measure_sees_prose_and_spares_tables_and_code() -> None:
    long = "word " * 30
    assert too_long(f"{long}\n| {long} |\n```\n{long}\n```\n- {long}\n") == [1, 6]


@every_page
def test_a_page_opens_with_a_title_and_a_sentence_on_what_it_is_for(page: Path) -> None:
    title, blank, first = page.read_text(encoding="utf-8").splitlines()[:3]
    assert title.startswith("# ")
    assert blank == ""
    assert re.match(r"(\*\*)?[A-Z`]", first), "the first paragraph must be prose, not a table, a list or a heading"


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text(encoding="utf-8")):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@every_page
def test_paths_named_in_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    spans = re.findall(r"`([^`\s]+)`", "\n".join(line for _, line in prose(text)))
    named = {re.sub(r":.*", "", span) for span in spans if re.match(rf"({PACKAGES})/", span)}
    missing = [path for path in sorted(named) if not list(ROOT.glob(path.rstrip("/")))]
    assert missing == []


def test_every_page_can_be_found_from_the_readme() -> None:
    found, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in found:
            continue
        found.add(page)
        targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page.read_text(encoding="utf-8"))]
        todo += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert [name(page) for page in PAGES if page not in found] == []


DECISIONS = [page for page in PAGES if page.parent.name == "decisions" and page.name not in ("README.md", "movers.md")]
"""`movers.md` is a list of many small ones."""


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_a_decision_is_short_and_says_why_what_was_refused_and_when_to_look_again(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40
    for heading in ("Decision", "Why", "Refused", "Look again when"):
        assert f"\n## {heading}\n" in text
