"""`sluice drains`: results of past drains (D10)."""

from __future__ import annotations

from cli.last import check_last
from cli.output import err, out, print_json
from cli.tables import drains_table
from operators.config import HERE, Where
from operators.core.since import since_words
from operators.shell.operations import open_store
from operators.shell.target import find_target


async def drains(*, where: Where = HERE, last: int = 20, json: bool = False) -> None:
    """List drain reports, newest first: how long each took, how many players were evicted, what was still forwarded at
    the end.

    For example:

        sluice drains --last 5

    Parameters
    ----------
    last
        How many.
    json
        Print the reports as JSON; since when they are known goes to standard error.
    """
    check_last(last)
    async with open_store(find_target(where)) as store:
        reports, since = await store.read_drain_reports(last), since_words(await store.known_since())
    if json:
        print_json(reports)
        err.print(since)
    else:
        out.print(drains_table(reports) if reports else "no SFU has drained yet")
        out.print(since)
