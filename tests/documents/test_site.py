"""The documentation is built as a site, and a link that leads nowhere is noticed. Tables that tell what the code does say what it does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ferry.ledger.receipts import ReceiptKind
from ferry.ledger.run_summary import DAYS_KEPT
from ferry.ledger.state import CLAIM_KEY, FLOW_KEY, HEAD_KEY, SYNC_KEY
from ferry.ledger.topics import RUNS, RUNS_KEPT, SMALL
from ferry.policy.naming import ledger_topic, position_group, runs_topic, state_topic

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = ["mkdocs", "build", "--config-file", str(source / "mkdocs.yml"), "--site-dir", str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})


def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "tutorial.html").exists()


@pytest.mark.parametrize(("link", "broken"), [("[x](cli.md#commands)", False), ("[x](nowhere.md)", True), ("[x](cli.md#nowhere)", True)])
def test_a_broken_link_is_an_error(tmp_path: Path, link: str, broken: bool) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Index\n\n{link}\n")
    (tmp_path / "docs" / "cli.md").write_text("# Commands\n")
    settings, _, _ = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")
    (tmp_path / "mkdocs.yml").write_text(settings)
    done = build(tmp_path, tmp_path / "site")
    said = done.stdout + done.stderr
    assert (done.returncode != 0, "nowhere" in said) == (broken, broken), said


def test_the_page_of_topics_says_what_the_code_does() -> None:
    page = (ROOT / "docs" / "internal-topics.md").read_text(encoding="utf-8")
    assert [name for name in (ledger_topic("A"), state_topic("A"), runs_topic("A"), position_group("A")) if f"`{name}`" not in page] == []
    assert [kind for kind in ReceiptKind if f"| `{kind.value}` |" not in page] == []
    assert [key for key in (HEAD_KEY, FLOW_KEY, CLAIM_KEY, SYNC_KEY) if f"`{key.decode()}`" not in page] == []
    assert f"`cleanup.policy=delete`, kept for {DAYS_KEPT} days" in page
    assert f"`{RUNS_KEPT}` of {DAYS_KEPT} days" in page
    assert [name for name, value in SMALL.items() if f"`{name}={value}`" not in page] == []
    assert RUNS.keys() - SMALL.keys() == {RUNS_KEPT}
    assert f"{RUNS_KEPT}={RUNS[RUNS_KEPT]}" in page
