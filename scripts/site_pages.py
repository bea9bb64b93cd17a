"""A hook of MkDocs: puts the repository's own pages into the site, and refuses what loads from elsewhere.

README.md, CONTRIBUTING.md and others stay where a reader of the repository expects them. Links between them and the
pages in docs/ are written for the repository; this hook points them to the pages of the site.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "benchmarks/README.md": "benchmarks.md",
    "java-shim/README.md": "internals.md",
    "spark_rowtime/store/local/FORMAT.md": "format.md",
}
"""Where each page of the repository is in the site."""

DOWNLOADS = "operations"
"""The folder whose files are in the site as they are."""

LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]*\bsrc="(?:https?:)?//|<link[^>]*rel="(?:stylesheet|preload|icon)"[^>]*href="(?:https?:)?//'
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the repository's pages, its files to download, and one page with all examples."""
    for source, target in PAGES.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    for file in sorted((ROOT / DOWNLOADS).iterdir()):
        files.append(File.generated(config, f"{DOWNLOADS}/{file.name}", abs_src_path=str(file)))
    files.append(File.generated(config, "examples.md", content=_examples()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links of the repository to the pages of the site."""
    del config, files
    sources = {target: source for source, target in PAGES.items()}
    source = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return LINK.sub(lambda link: _link(link, source, page.file.src_uri), markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Fails the build where a page would load something from the network."""
    del config
    found = LOADED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {found[0]}")
    return output


def _link(link: re.Match[str], source: str, target: str) -> str:
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
    anchor = link[2] or ""
    if path.startswith("examples/"):
        page, anchor = "examples.md", f"#{_anchor(Path(path).name)}"
    elif path in PAGES:
        page = PAGES[path]
    elif path.startswith(f"{DOWNLOADS}/"):
        page = path
    elif path.startswith("docs/"):
        page = path.removeprefix("docs/")
    else:
        raise PluginError(f"{source} links to {link[1]}, which is no page of the site.")
    return f"]({posixpath.relpath(page, posixpath.dirname(target) or '.')}{anchor})"


def _examples() -> str:
    files = sorted((ROOT / "examples").glob("*.py"))
    intro = "# Examples\n\nEach runs alone, as `python examples/NAME`; the tests run all of them.\n"
    return intro + "\n".join(
        f"\n## {file.name} {{#{_anchor(file.name)}}}\n\n```python\n{file.read_text()}```\n" for file in files
    )


def _anchor(name: str) -> str:
    return f"example-{name.removesuffix('.py').replace('_', '-')}"
