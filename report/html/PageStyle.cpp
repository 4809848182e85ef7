//===- PageStyle.cpp - Style sheet of the HTML report ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/PageStyle.h"

namespace dtc {

// No '<' and no '&' in either, so that the report is XML as well as HTML.

const char *const kPageStyle = R"css(
:root{color-scheme:light dark;--ground:#ffffff;--card:#f5f6f8;--ink:#1b1f24;--faint:#59636e;
--line:#d8dde3;--accent:#1f5fb4;--bad:#b3261e;--good:#2b7a3d;--wait:#f0f2f4;--waitline:#cfd4da;
--move:#c2571a;--bar:#dfe7f3}
@media (prefers-color-scheme:dark){:root{--ground:#14171b;--card:#1d2127;--ink:#e6e9ed;
--faint:#9aa4b0;--line:#363d46;--accent:#79aef2;--bad:#f2867e;--good:#7cc78b;--wait:#22272e;
--waitline:#39414b;--move:#f09a5e;--bar:#2a3a52}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,footer{max-width:1184px;margin:0 auto;padding:0 32px}
header{padding-top:36px}
h1{font-size:30px;line-height:1.2;margin:0 0 6px}
h2{font-size:20px;margin:0 0 6px}
h3{font-size:15px;margin:22px 0 6px}
p{margin:6px 0 12px;max-width:90ch}
section{margin:44px 0 0}
.lead,.note,caption,footer{color:var(--faint)}
.note,caption,footer{font-size:13px}
.bad{color:var(--bad);font-weight:600}
.good{color:var(--good);font-weight:600}
footer{margin-top:48px;padding-bottom:40px}
nav{margin-top:12px;font-size:14px}
nav a{margin-right:18px}
a{color:var(--accent)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(168px,1fr));gap:12px;
margin:22px 0 0;padding:0;list-style:none}
.cards li{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.cards .what{display:block;font-size:13px;color:var(--faint)}
.cards .value{display:block;font-size:23px;font-weight:650;line-height:1.3}
.cards .more{display:block;font-size:12.5px;color:var(--faint)}
.mesh{display:flex;flex-wrap:wrap;gap:8px;margin:12px 0 16px;padding:0;list-style:none}
.mesh li{border:1px solid var(--line);border-radius:999px;padding:3px 14px;background:var(--card)}
.wide{overflow-x:auto}
table{border-collapse:collapse;min-width:60%;font-size:13.5px;margin:10px 0 4px;
font-variant-numeric:tabular-nums}
summary{cursor:pointer;margin-top:8px}
caption{text-align:left;padding-bottom:4px}
th,td{padding:5px 22px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;
text-align:left}
th{font-weight:600}
thead th{vertical-align:bottom}
.n{text-align:right}
td.n,tbody th{white-space:nowrap}
td.n:last-child,th.n:last-child{padding-right:0}
code{font:12.5px ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
.meter{display:inline-block;height:9px;border-radius:2px;background:var(--accent);
vertical-align:baseline}
svg{display:block;max-width:none;width:100%;height:auto;font:12px system-ui,"Segoe UI",Roboto,
"DejaVu Sans",sans-serif}
svg text{fill:var(--ink)}
svg .f{fill:var(--faint)}
svg .l{stroke:var(--line);fill:none}
svg .s{font-size:11px}
svg .e{text-anchor:end}
svg .m{text-anchor:middle}
svg .b{font-weight:600}
svg .w{fill:#ffffff;text-anchor:middle;pointer-events:none}
svg .ws{fill:#ffffff;font-size:11px}
svg .box{fill:var(--card);stroke:var(--line)}
svg .free{fill:none;stroke:var(--line);stroke-dasharray:4 3}
svg .idle{fill:var(--wait);stroke:var(--waitline);stroke-width:.5}
svg .g{stroke:var(--ground);stroke-width:.5}
svg .move{stroke:var(--move);stroke-width:1;stroke-opacity:.6}
svg .limit{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:6 4;fill:none}
svg .bound{stroke:var(--faint);stroke-width:1;stroke-dasharray:2 3;fill:none}
svg .peak{fill:var(--ink)}
.legend{display:flex;flex-wrap:wrap;gap:4px 20px;margin:8px 0 4px;padding:0;list-style:none;
font-size:13px}
.legend svg{display:inline-block;width:13px;height:13px;margin-right:7px;vertical-align:-1px}
.scroll{overflow-x:auto}
.zoom{font-size:13px;color:var(--faint)}
.zoom button{font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--line);
border-radius:6px;padding:1px 10px;margin-left:6px;cursor:pointer}
.a0{fill:#a87a14}.a1{fill:#a8324a}.a2{fill:#b5489a}.a3{fill:#8c5a3c}.a4{fill:#4f7d2a}.a5{fill:#5a4fa3}
.c0{fill:#1f5fb4}.c1{fill:#2b7a3d}.c2{fill:#7a3fa8}.c3{fill:#a8552a}.c4{fill:#17737f}.c5{fill:#a8325f}
.c6{fill:#6b6a1e}.c7{fill:#4d5b8c}
.k0{fill:#1f5fb4}.k1{fill:#17808f}.k2{fill:#6f93c4}.k3{fill:#7a3fa8}.k4{fill:#8d96a1}.k5{fill:#b9a3d0}
.tr{fill:#c2571a}.ho{fill:#5c6b2f}.tm{fill:var(--move)}
.m0{fill:#1f5fb4}.m1{fill:#5b93d8}.m2{fill:#7a3fa8}.m3{fill:#2b7a3d}.m4{fill:#d08a2e}.m5{fill:#7b828b}
)css";

const char *const kPageScript = R"js(
document.querySelectorAll('.zoom').forEach(function (bar) {
  var picture = document.getElementById(bar.dataset.of);
  [1, 2, 4, 8].forEach(function (factor) {
    var button = document.createElement('button');
    button.type = 'button';
    button.textContent = factor + '\u00d7';
    button.addEventListener('click', function () {
      picture.querySelectorAll('svg').forEach(function (svg) {
        svg.style.width = 100 * factor + '%';
      });
    });
    bar.appendChild(button);
  });
  bar.hidden = false;
});
)js";

} // namespace dtc
