"""Opens a page in a real browser without network: check-in-browser.py BROWSER PAGE SCRATCH [--dark]

A copy of the page with a script that measures it is loaded, and the browser prints what became of it. Everything has a
size, nothing is wider than the report, no text of a figure reaches out of it, the buttons work, and the browser finds
nothing to complain about.
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys

MEASURE = """
var result = {errors: window.pageErrors, sections: [], pictures: [], tables: 0, outside: [], wider: []};
function size(element) { var box = element.getBoundingClientRect(); return [box.width, box.height]; }
document.querySelectorAll('section').forEach(function (section) { result.sections.push([section.id].concat(size(section))); });
document.querySelectorAll('svg[role=img]').forEach(function (svg) {
  var frame = svg.getBoundingClientRect(), shapes = 0;
  svg.querySelectorAll('rect, path, line').forEach(function (shape) {
    var box = shape.getBoundingClientRect();
    if (box.width + box.height > 0) ++shapes;
  });
  svg.querySelectorAll('text').forEach(function (text) {
    var box = text.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 3 || box.bottom > frame.bottom + 3)
      result.outside.push(text.textContent);
  });
  result.pictures.push([svg.getAttribute('class')].concat(size(svg), [shapes]));
});
document.querySelectorAll('table').forEach(function (table) { if (size(table)[1] > 0) ++result.tables; });
document.querySelectorAll('header, main, section, table, svg[role=img], p').forEach(function (element) {
  if (element.getBoundingClientRect().right > window.innerWidth + 1) result.wider.push(element.outerHTML.slice(0, 80));
});
result.scrolls = document.documentElement.scrollWidth > window.innerWidth;
var buttons = document.querySelectorAll('.zoom button');
result.buttons = buttons.length;
var step = document.querySelector('#steps svg'), before = size(step)[0];
if (buttons.length > 1) buttons[1].click();
result.zoom = size(step)[0] / before;
result.ground = getComputedStyle(document.body).backgroundColor;
var out = document.createElement('pre');
out.id = 'measured';
out.textContent = JSON.stringify(result);
document.body.appendChild(out);
"""
CATCH = "window.pageErrors = []; window.addEventListener('error', function (e) { window.pageErrors.push(e.message); });"

browser, path, scratch = sys.argv[1:4]
dark = "--dark" in sys.argv
shutil.rmtree(scratch, ignore_errors=True)
os.makedirs(scratch)
page = open(path, encoding="utf-8").read()
page = page.replace("<head>", f"<head><script>{CATCH}</script>", 1).replace("</body>", f"<script>{MEASURE}</script></body>", 1)
copy = os.path.abspath(os.path.join(scratch, "page.html"))
open(copy, "w", encoding="utf-8").write(page)

command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
           "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + os.path.abspath(os.path.join(scratch, "profile")),
           "--enable-logging=stderr", "--window-size=1400,3000", "--virtual-time-budget=5000", "--dump-dom"]
if dark:
    command.append("--blink-settings=preferredColorScheme=0")
run = subprocess.run([*command, "file://" + copy], capture_output=True, text=True, timeout=180)
shutil.rmtree(os.path.join(scratch, "profile"), ignore_errors=True)
found = re.search(r'<pre id="measured">(.*?)</pre>', run.stdout, re.DOTALL)
if run.returncode != 0 or not found:
    sys.exit(f"{browser} has not measured the report (status {run.returncode}):\n{run.stderr[-3000:]}")
result = json.loads(html.unescape(found.group(1)))

failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


complaints = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
check(not complaints, f"the console has {complaints}")
check(not result["errors"], f"errors {result['errors']}")
check(len(result["sections"]) >= 6, f"sections {result['sections']}")
for name, width, height in result["sections"]:
    check(width > 900 and height > 60, f"section {name} is {width} x {height}")
kinds = {picture[0] for picture in result["pictures"]}
check(kinds == {"topology", "step", "times", "memory"}, f"figures {kinds}")
for kind, width, height, shapes in result["pictures"]:
    check(width > 900 and height > 30 and shapes > 1, f"figure {kind} is {width} x {height} with {shapes} shapes")
check(result["tables"] >= 5, f"{result['tables']} tables")
check(not result["outside"], f"text outside of its figure: {result['outside']}")
check(not result["wider"] and not result["scrolls"], f"wider than the report: {result['wider']}")
check(result["buttons"] == 4 and abs(result["zoom"] - 2) < 0.01, f"{result['buttons']} buttons, zoom {result['zoom']}")
light = sum(int(number) for number in re.findall(r"\d+", result["ground"])[:3]) > 384
check(light != dark, f"the ground is {result['ground']}")
if failures:
    sys.exit("\n".join([path, *failures]))
print(f"{len(result['sections'])} sections and {len(result['pictures'])} figures, {'dark' if dark else 'light'}")
