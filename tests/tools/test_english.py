"""The lint of English finds what it names, where it is, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.english import main, problems

pytestmark = pytest.mark.unit


def found(source: str) -> list[tuple[int, str]]:
    return [(line, what.split(":")[0]) for line, what in problems(source)]


@pytest.mark.parametrize(
    "text",
    [
        "The newest run counts as running for so long.",
        "A message names so many topics.",
        "At most so few\n# columns fit.",
        "So much work is repeated.",
        "Ferry asks for the time so often.",
    ],
)
def test_an_amount_that_nothing_explains_is_found(text: str) -> None:
    assert found(f"# {text}\n") == [(1, "say the amount")]


@pytest.mark.parametrize(
    "text", ["So many groups that the last ones are small.", "It fails so often,\n# with any load, that Ferry counts it."]
)
def test_an_amount_with_its_consequence_is_not(text: str) -> None:
    assert found(f"# {text}\n") == []


def test_the_consequence_must_be_in_the_same_sentence() -> None:
    assert found("# So many are lost. They are those that are old.\n") == [(1, "say the amount")]


@pytest.mark.parametrize(
    "text", ["What it was told.", "The answer tells the leader.", "It cannot tell which one.", "Topics can be told apart."]
)
def test_a_machine_tells_nothing(text: str) -> None:
    assert found(f'"""{text}"""\n') == [(1, "a machine says, reports or knows")]


def test_code_is_no_english() -> None:
    assert found('told = "told"  # `tell(so many)`\nnot_told = told  # TOLD, PARTITIONS_TOLD\n') == []


def test_a_problem_has_the_line_where_it_begins() -> None:
    assert found('"""First.\n\nIt says\nso many\ntopics."""\nhere = 1\n# one\n# it told\n') == [
        (4, "say the amount"),
        (8, "a machine says, reports or knows"),
    ]


@pytest.mark.parametrize(
    "text",
    ["As `asked`.", "See Coordinator.init.", "As of the function `tight`.", "Like group_requests", "As Kafka's AssertionSupplierFactory."],
)
def test_a_docstring_that_only_sends_elsewhere_is_found(text: str) -> None:
    assert found(f'def asked() -> None:\n    """{text}"""\n') == [(2, "say what it does")]


@pytest.mark.parametrize("text", ["As JSON.", "As `asked`, for a group.", "As the history keeps it.", "Asks Kafka."])
def test_a_docstring_that_says_something_is_not(text: str) -> None:
    assert found(f'def asked() -> None:\n    """{text}"""\n') == []


GLOSSARY = '''
class Range:
    """A range. %s"""

    start: int
    end: int
    kind: str
'''


@pytest.mark.parametrize(
    "text",
    ["`start`, `end`: of offsets. `kind`: its kind.", "start: first. end: last; kind:\n    which.", "`start`: x. `end` and `kind`: y."],
)
def test_a_glossary_at_the_head_of_a_class_is_found(text: str) -> None:
    assert found(GLOSSARY % text) == [(3, "explain fields beside them")]


@pytest.mark.parametrize(
    "text", ["`start`: inclusive. `end`: exclusive.", "It has `start`, `end` and `kind`.", "`start`: x. `others`: y. `kind`: z."]
)
def test_two_fields_and_names_without_explanation_are_no_glossary(text: str) -> None:
    assert found(GLOSSARY % text) == []


def test_files_of_folders_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "one.py").write_text("# so many topics\n")
    (tmp_path / "two.py").write_text("# fine\n")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(f"{tmp_path}/rooms/one.py:1: say the amount: ")
    assert main([str(tmp_path / "two.py")]) == 0


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        main([str(tmp_path / "renamed")])
