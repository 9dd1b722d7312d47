"""What a run leaves in a notebook, made safe and small: it is shown to learners, and to the instructor in a browser."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer

from autograder.grade.classroom import is_check

Cell = dict[str, Any]
LONGEST = 20_000
"""Characters of one output."""
MOST = 50
"""Outputs of one cell."""
LARGEST_PICTURE = 4 * 2**20


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TAGS = words(
    "a abbr b blockquote br caption code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img "
    "input kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul"
)
ATTRIBUTES = words("align aria-hidden class colspan id open role rowspan scope style title")
CALLED_IN_STYLE = re.compile(r"(?<![\w-])(?!rgba?\(|hsla?\()[\w-]*\(|\\")
"""What a style may call is a colour: an address in it would tell others who reads the page."""


class Styles(CSSSanitizer):
    """bleach's own looks at the names of properties alone."""

    def sanitize_css(self, style: str) -> str:
        kept = super().sanitize_css(style)
        return "" if CALLED_IN_STYLE.search(kept) else kept


STYLES = Styles(
    allowed_css_properties=words(
        "background background-color border border-collapse border-left color font-family font-size font-style "
        "font-weight line-height margin max-width opacity padding text-align vertical-align white-space"
    )
)
MATHJAX_COMMANDS = re.compile(r"\\(?=(?:href|class|cssId|style|require|unicode|data|mmlToken|bbox)\b)")
"""Formulas can make links and load code, and a sanitiser of HTML does not see into them."""
REFERENCE = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);?")
"""A character by number or name: `&#92;` is a backslash."""


def tidy(cell: Cell) -> None:
    """Make the outputs of an executed code cell safe to show, in place.

    Text and pixels stay. HTML stays only where one of our checks has shown its verdict, and goes through `safe_html`.
    What a check cell wrote to stderr is kept as ordinary output, since nbgrader takes it for a failure.
    """
    check = is_check(cell)
    kept = [shown for output in cell["outputs"][:MOST] if (shown := tidied(output, check))]
    if len(cell["outputs"]) > MOST:
        kept.append(stream(f"... and {len(cell['outputs']) - MOST} more outputs\n"))
    cell["outputs"] = kept


def tidied(output: Cell, check: bool) -> Cell | None:
    kind = output["output_type"]
    if kind == "stream":
        return stream(output["text"], "stdout" if check else output["name"])
    if kind == "error":
        lines = [shortened(line) for line in output["traceback"][-60:]]
        message = {"ename": shortened(output["ename"], 200), "evalue": shortened(output["evalue"], 2000)}
        return {"output_type": "error", **message, "traceback": lines}
    data = {name: value for name, value in output["data"].items() if shows(name, value)}
    if "text/plain" in data:
        data["text/plain"] = shortened(data["text/plain"])
    if check and isinstance(verdict := output["data"].get("text/html"), str):
        data["text/html"] = safe_html(shortened(verdict))
    if not data:
        return None
    numbered = {"execution_count": output.get("execution_count")} if kind == "execute_result" else {}
    return {"output_type": kind, "data": data, "metadata": {}, **numbered}


def shows(kind: str, value: Any) -> bool:
    """Whether an output of this kind is nothing but text or pixels."""
    if not isinstance(value, str):
        return False
    return kind == "text/plain" or (kind in ("image/png", "image/jpeg") and len(value) <= LARGEST_PICTURE)


def stream(text: str, name: str = "stdout") -> Cell:
    return {"output_type": "stream", "name": name, "text": shortened(text)}


def shortened(text: str, longest: int = LONGEST) -> str:
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n... and {len(text) - longest:,} more characters"


def safe_html(html: str) -> str:
    """HTML without scripts, event handlers, forms, frames, styles that reach out, or pictures from elsewhere."""
    clean = bleach.clean(html, tags=TAGS, attributes=allowed, protocols=("http", "https", "mailto", "data"),
                         css_sanitizer=STYLES)  # fmt: skip
    spelt_out = REFERENCE.sub(lambda found: escape(unescape(found[0])), clean)  # as formulas are read
    return MATHJAX_COMMANDS.sub(r"\\ ", spelt_out)


def allowed(tag: str, name: str, value: str) -> bool:
    """Which attributes stay. (bleach has already refused addresses that are not of one of the protocols.)"""
    if tag == "img" and name == "src":
        return re.match(r"data:image/(png|jpeg|gif);base64,", value) is not None
    if tag == "a" and name == "href":
        return not value.strip().lower().startswith("data:")
    if tag == "img":
        return name in ("alt", "width", "height")
    if tag == "input":  # the box of a ticked list
        return name in ("checked", "disabled") or (name, value) == ("type", "checkbox")
    return name in ATTRIBUTES
