"""Checks a page of dtc-plan simulate --report: check-page.py FILE SECTION...

It is XML and HTML at once, has these sections, refers to nothing outside of itself, and says in words what its figures
and tables show.
"""

import html.parser
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"


class Reader(html.parser.HTMLParser):
    """Collects what browsers would see."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements = []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))


def check(condition, message):
    if not condition:
        sys.exit(f"{path}: {message}")


path, sections = sys.argv[1], sys.argv[2:]
text = open(path, encoding="utf-8").read()
check(text.startswith("<!DOCTYPE html>\n"), "no document type")
check(os.path.getsize(path) < 2 << 20, "too large")
root = ElementTree.fromstring(text.split("\n", 1)[1])  # or it raises what is wrong
reader = Reader()
reader.feed(text)

names = [tag for tag, _ in reader.elements]
check(names[:3] == ["html", "head", "meta"], f"begins with {names[:3]}")
# The same elements for both readers: none is hidden in another's text.
tree = [element.tag.replace(SVG, "") for element in root.iter()]
check(sorted(tree) == sorted(names), "HTML and XML differ")

outside = re.findall(r'https?:[^"\s<]*', text)
check(set(outside) == {"http://www.w3.org/2000/svg"}, f"refers to {set(outside)}")
check(not re.search(r"@import|url\(|\bsrc=|<link|<iframe|<img", text), "loads something")
check(names.count("script") == 1, "more scripts than one")

ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
check(len(ids) == len(set(ids)), "ids are not unique")
for tag, attributes in reader.elements:
    for reference in [attributes.get("href", "#")[1:], *attributes.get("aria-labelledby", "").split()]:
        check(not reference or reference in ids, f"{tag} refers to {reference}")
    for name in attributes:
        check(not name.startswith("on"), f"{tag} has {name}")
    for name in ("x", "y", "width", "height", "x1", "y1", "x2", "y2"):
        if name in attributes and tag in ("rect", "line", "text", "svg"):
            check(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", attributes[name]), f"{name}={attributes[name]} of {tag}")

found = [section.get("id") for section in root.iter("section")]
check(found == sections, f"has {found}")
for section in root.iter("section"):
    check(section.find("h2") is not None, "a section without heading")
pictures = [svg for svg in root.iter(SVG + "svg") if svg.get("aria-hidden") is None]
for svg in pictures:
    check(svg.get("role") == "img" and svg[0].tag == SVG + "title" and svg[1].tag == SVG + "desc", "a figure without words")
    check(svg[0].text.strip() and svg[1].text.strip(), "a figure with empty words")
tables = list(root.iter("table"))
for table in tables:
    check(table.find("caption") is not None, "a table without caption")
    head = table.findall("thead/tr/th")
    check(head and all(cell.get("scope") == "col" for cell in head), "a table without head")
    for row in table.findall("tbody/tr"):
        check(len(row) == len(head), f"a row of {len(row)} cells under {len(head)} columns")
print(f"{len(found)} sections, {len(pictures)} figures, {len(tables)} tables")
