"""Rules of the house that a machine can hold."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FILE_LINES = 500
LOCKS = ("operator", "forecaster", "runtime", "dev", "bootstrap", "build")


def tracked(*patterns: str) -> list[Path]:
    """Files that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_source_file_is_longer_than_500_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked("*.py", "*.go", "*.sh")
        if (lines := len(path.read_text().splitlines())) > LONGEST_FILE_LINES
    }
    assert long == {}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_is_hashed_and_holds_no_download_address(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    pinned = re.findall(r"^[A-Za-z0-9._-]+==\S+", text, flags=re.MULTILINE)
    assert pinned
    assert "://" not in text
    assert "index" not in [line.split()[0].strip("-") for line in text.splitlines() if line.startswith("-")]
    assert text.count("--hash=sha256:") >= len(pinned)


def test_every_extra_of_the_project_has_a_lock_file_and_so_has_what_builds_it() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {path.stem for path in (ROOT / "requirements").glob("*.txt")} == (set(extras) - {"all"}) | {"bootstrap", "build"}
    assert set(LOCKS) == {path.stem for path in (ROOT / "requirements").glob("*.txt")}


def test_every_make_target_that_the_documentation_names_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named: set[str] = set()
    for page in tracked("*.md"):
        named |= set(re.findall(r"`(?:[A-Z]+=\S+ )?make ([a-z][a-z0-9-]*)", page.read_text()))
    assert named
    assert named <= targets


def broken_links(page: Path) -> list[str]:
    """Relative links of a page that lead nowhere."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    return [f"{page.relative_to(ROOT)}: {link}" for link in local if not (page.parent / link).exists()]


def test_every_link_between_pages_leads_somewhere() -> None:
    assert [link for page in tracked("*.md") for link in broken_links(page)] == []
