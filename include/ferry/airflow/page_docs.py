"""Ferry's documentation in Airflow: each page at /ferry/docs/, and in the logs of tasks a link to it where Ferry names one.

A user who has installed the wheel has no checkout. The wheel has the pages in the package, the repository has them in `docs/`.
"""

import re
from itertools import pairwise
from pathlib import Path

import ferry

PACKAGE = Path(ferry.__file__).parent
DOCS = PACKAGE / "docs" if (PACKAGE / "docs").is_dir() else PACKAGE.parents[1] / "docs"
PAGE = re.compile(r"\bdocs/([a-z-]+\.md)\b")
# One column of text as wide as it is easily read, in the colours that the reader prefers.
HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} - Ferry</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>
body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
td, th {{ border: 1px solid #8886; padding: .25rem .5rem; text-align: left; vertical-align: top }}
pre {{ overflow-x: auto; padding: .75rem; background: #8882 }}
img {{ max-width: 100% }}
</style></head><body>{body}</body></html>
"""


def page_as_html(text: str) -> str:
    """One page of Markdown, with an id for each heading: links name it as GitHub does."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - tasks load this module too, and draw no page

    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(text)
    title = ""
    for heading, words in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", re.sub(r"[^\w\- ]", "", words.content.lower()).replace(" ", "-"))
            title = title or words.content
    return HTML.format(title=title, body=parser.renderer.render(tokens, parser.options, {}))


def linked(text: str, task_url: str) -> str:
    """`text` with a link for each page of the documentation; `task_url` is an address in the same Airflow."""
    airflow, found, _ = task_url.partition("/dags/")
    return PAGE.sub(rf"{airflow}/ferry/docs/\1", text) if found and airflow.startswith("http") else text
