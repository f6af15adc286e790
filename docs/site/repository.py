"""Hook of MkDocs that adds documents outside docs/ as pages, and copies of the other files to which guides link."""

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
"""Pages of the site, with the documents of the repository that they show."""
_SHOWN = {source: page for page, source in PAGES.items()}
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
_FENCED = re.compile(r"^( *```.*?^ *```)$", flags=re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds pages for the documents outside docs/."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites a link to a file of the repository into one to the page that shows it, or to a copy of the file.

    A link to a folder becomes its name. A dangling link stays unchanged, and MkDocs reports it.
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
    """Returns the name of a file's copy in the site; sources end in .txt, so that browsers show them."""
    return f"files/{target}" if target.endswith((".png", ".gif", ".json", ".ipynb")) else f"files/{target}.txt"
