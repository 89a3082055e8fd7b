"""What pyproject.toml cannot say: the addresses, all from the one in CITATION.cff, and the README with links
that lead there."""

import re
from pathlib import Path

from setuptools import setup

citation = Path("CITATION.cff").read_text(encoding="utf-8")
repository = re.search(r"^repository-code: (\S+)$", citation, re.MULTILINE)[1]
version = re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1]
owner, name = repository.split("/")[-2:]

readme = Path("README.md").read_text(encoding="utf-8")
readme = readme.replace("](#", "](README.md#")
readme = re.sub(r"!\[([^]]*)\]\((?!https?:)", rf"![\1]({repository}/raw/v{version}/", readme)
readme = re.sub(r"\]\((?!https?:)", f"]({repository}/blob/v{version}/", readme)

setup(
    long_description=readme,
    long_description_content_type="text/markdown",
    project_urls={
        "Documentation": f"https://{owner}.github.io/{name}/",
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    },
)
