"""HTML and SVG as trees: text becomes text, whatever it contains, because only the tree's writer makes markup."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Union

Element = ET.Element
Child = Union[str, "ET.Element", None, Iterable["Child"]]

MAX_TEXT = 20_000
"""Characters of one text that are kept."""


def element(tag: str, *children: Child, **attributes: object) -> Element:
    """An element. Attributes that are None are left out; class_ is class, and of other names _ is a hyphen."""
    plain = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value is not None}
    made = ET.Element(tag, {name: _clean(str(value)) for name, value in plain.items()})
    _append(made, children)
    return made


def write_page(root: Element) -> str:
    """The document of an html element."""
    return "<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def _append(parent: Element, child: Child) -> None:
    if child is None:
        return
    if isinstance(child, ET.Element):
        parent.append(child)
    elif not isinstance(child, str):
        for one in child:
            _append(parent, one)
    elif len(parent):
        parent[-1].tail = (parent[-1].tail or "") + _clean(child)
    else:
        parent.text = (parent.text or "") + _clean(child)


def _clean(text: str) -> str:
    """Without what neither HTML nor a terminal shows: control characters and lone surrogates."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text[:MAX_TEXT])
