"""The settings file with a node's ceilings, which says how they were found: for SFUs or for the autoscaler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shared.errors import BadSetting

MARK = "# Ceilings of an SFU, found by `sluice capacity`"
"""The first line: a file that begins otherwise was not written by us, and is not overwritten."""


def env_text(values: Mapping[str, float], story: Sequence[str]) -> str:
    """For SFUs: what docker's `--env-file`, systemd's `EnvironmentFile=` and a shell read alike."""
    lines = [f"SLUICE_{key.upper()}={value}" for key, value in values.items()]
    use = "docker run --env-file, systemd EnvironmentFile=, kubectl create configmap --from-env-file"
    return _text(story, use, lines)


def toml_text(values: Mapping[str, float], story: Sequence[str]) -> str:
    """For the autoscaler: lines of its file, and a whole file on its own."""
    return _text(
        story,
        "copy into the autoscaler's file, above its tables",
        [f"{key} = {value}" for key, value in values.items()],
    )


FORMS: Mapping[str, Callable[[Mapping[str, float], Sequence[str]], str]] = {".env": env_text, ".toml": toml_text}
"""By suffix."""


def check_target(path: Path) -> None:
    """Raises `BadSetting` when the file has no form, was not written by us, or can't be written. Changes nothing."""
    if path.suffix not in FORMS:
        raise BadSetting(setting="--out", detail=f"{path} must end in {' or '.join(FORMS)}: the suffix is the form")
    first = check_writable(path, setting="--out")
    if first and not first.startswith(MARK.encode()):
        raise BadSetting(setting="--out", detail=f"{path} exists and is not of `sluice capacity`; give another name")


def check_writable(path: Path, *, setting: str) -> bytes:
    """The first line of what is there. Raises `BadSetting` when the file can't be written. Changes nothing."""
    existed = path.exists()
    try:
        with path.open("a+b") as file:
            file.seek(0)
            first = file.readline(1000)
        if not existed:
            path.unlink()
    except OSError as error:
        raise BadSetting(setting=setting, detail=f"{path} can't be written: {error.strerror}") from None
    return first


def write(path: Path, values: Mapping[str, float], story: Sequence[str]) -> None:
    """Raises `BadSetting` when it can't be written."""
    try:
        path.write_text(FORMS[path.suffix](values, story), encoding="utf-8")
    except OSError as error:
        raise BadSetting(setting="--out", detail=f"{path} can't be written: {error.strerror}") from None


def _text(story: Sequence[str], use: str, lines: Sequence[str]) -> str:
    told = "".join(f"# {' '.join(line.split())}\n" for line in story)
    return f"{MARK}: {use}.\n{told}\n" + "".join(f"{line}\n" for line in lines)
