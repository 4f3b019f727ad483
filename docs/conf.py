"""How Sphinx builds the documentation: ``make docs``."""

from __future__ import annotations

import rolltop

project = "rolltop"
author = "the rolltop authors"
project_copyright = "the rolltop authors"
version = release = rolltop.__version__

extensions = ["myst_parser", "sphinx_design"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"rolltop {release}"
