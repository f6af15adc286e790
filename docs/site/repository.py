"""A hook of MkDocs: documents from outside docs/ become pages, and other files that guides link come with the site."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "security-policy.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
    "chart.md": "deploy/helm/kubebeast/README.md",
}
"""Pages of the site, and the documents of the repository that they show."""
_SHOWN = {source: page for page, source in PAGES.items()}
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
_FENCED = re.compile(r"^( *```.*?^ *```)$", flags=re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are documents elsewhere."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns a link to a file of the repository into one to the page that shows it, or to a copy of the file.

    The link to a folder becomes its name. A link that leads nowhere stays as it is: MkDocs reports it.
    """
    uri = page.file.src_uri
    folder = posixpath.dirname(PAGES.get(uri, f"docs/{uri}"))

    def rewritten(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["path"]))
        if (ROOT / target).is_dir():
            return f"{link['text']} (`{target}`)"
        if not (ROOT / target).is_file():
            return link.group()
        shown = _SHOWN.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else _copy(target))
        if files.get_file_from_path(shown) is None:
            files.append(File.generated(config, shown, abs_src_path=str(ROOT / target)))
        path = posixpath.relpath(shown, posixpath.dirname(uri) or ".")
        return f"[{link['text']}]({path}{link['anchor'] or ''})"

    parts = _FENCED.split(markdown)
    return "".join(part if index % 2 else _LINK.sub(rewritten, part) for index, part in enumerate(parts))


def _copy(target: str) -> str:
    """Name of a file's copy in the site; sources are text, so that browsers show them."""
    return f"files/{target}" if target.endswith((".png", ".gif", ".json", ".ipynb")) else f"files/{target}.txt"
