# SPDX-License-Identifier: Apache-2.0
"""The site for Sphinx; tools/docs runs it on the pages that tools/site/pages.py prepares."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

project = "Tenon"
author = copyright = "the Tenon authors"
version = release = os.environ["TENON_VERSION"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings"]
root_doc = "index"
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]  # pages begin with headings of the second level where they are parts of others
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
add_module_names = False
highlight_language = "text"
html_theme = "furo"
html_title = f"Tenon {version}"
html_static_path = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
nitpicky = False
