// SPDX-License-Identifier: Apache-2.0
#include "html_report.h"

namespace tenon::conformance::html_report {

// A class has a symbol and a word in addition to its colour: ✘ fail, ✔ pass, ○ unsupported, – excluded, … not run.
const char* const style = R"(
.verdict { font-size: 17px; color: var(--ink); margin: 4px 0 14px; }
.verdict::before, .kind::before, #classes button::before { font-weight: bold; margin-right: 6px; }
.pass::before { content: "\2714"; color: var(--green); } .fail::before { content: "\2718"; color: var(--orange); }
.unsupported::before { content: "\25CB"; color: var(--blue); } .excluded::before { content: "\2013"; } .not_run::before { content: "\2026"; }
.about { display: flex; flex-wrap: wrap; gap: 2px 28px; margin: 0 0 18px; padding: 12px 16px; background: var(--card); border: 1px solid var(--grid); border-radius: 8px; }
.about div { display: flex; gap: 8px; min-width: 0; } .about dt, .facts dt { color: var(--soft); white-space: nowrap; } dd { margin: 0; overflow-wrap: anywhere; }
button, select, input { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--soft); border-radius: 6px; padding: 5px 10px; min-height: 36px; }
button { cursor: pointer; } button:hover { border-color: var(--ink); }
:focus-visible { outline: 3px solid var(--blue); outline-offset: 1px; }
#classes { display: flex; flex-wrap: wrap; gap: 8px; margin-bottom: 12px; }
#classes button[aria-pressed=true] { border-color: var(--ink); box-shadow: inset 0 0 0 1px var(--ink); }
#filters { position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: end; padding: 10px 0; background: var(--page); border-bottom: 1px solid var(--grid); z-index: 1; }
#filters label { display: grid; color: var(--soft); font-size: 13px; } #filters label.wide { flex: 1 1 220px; }
#filters select, #filters input { color: var(--ink); font-size: 15px; width: 100%; }
#count { display: block; color: var(--soft); margin: 10px 0; }
#cases { list-style: none; margin: 0; padding: 0; }
#cases > li { border-bottom: 1px solid var(--grid); padding: 5px 0; content-visibility: auto; contain-intrinsic-size: auto 34px; }
#cases .line, #cases summary { display: flex; flex-wrap: wrap; gap: 0 14px; align-items: baseline; }
#cases summary { cursor: pointer; } #cases summary::before { content: "\25B8"; flex: 0 0 10px; margin-right: -4px; color: var(--soft); }
#cases details[open] > summary::before { content: "\25BE"; } #cases .line { padding-left: 20px; }
.name { font: 14px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; min-width: 0; flex: 1 1 300px; }
.kind { color: var(--soft); min-width: 112px; white-space: nowrap; } .kind.fail { color: var(--ink); font-weight: bold; }
.body { padding: 6px 0 8px; } .body p { color: var(--ink); margin: 0 0 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (min-width: 700px) { .body { padding-left: 146px; } }
@media (max-width: 700px) { #filters { position: static; } .body { padding-left: 20px; } }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 14px; margin: 0 0 8px; font-variant-numeric: tabular-nums; }
.again { display: flex; gap: 8px; align-items: start; } .again code { flex: 1; padding: 7px 10px; background: var(--card); border: 1px solid var(--grid); border-radius: 6px;
  font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; min-width: 0; }
#by-op summary { cursor: pointer; color: var(--soft); margin: 10px 0; } #by-op table { margin: 0 0 10px; }
#by-op td:empty::before { content: "\00B7"; color: var(--grid); } #by-op button { padding: 0 6px; min-height: 28px; border-color: transparent; background: none; text-decoration: underline; }
#by-op > div { overflow-x: auto; }
)";

const char* const filters = R"(<noscript><p>The list of cases needs JavaScript; the counts above do not.</p></noscript>
<form id="filters" role="search">
<label>op<select id="op"><option value="">all</option></select></label>
<label>dtype<select id="dtype"><option value="">all</option></select></label>
<label class="wide">text in name or message<input id="text" type="search" autocomplete="off"></label>
<button type="reset">Clear</button>
</form>
<output id="count"></output>
<details id="by-op"><summary>By op</summary><div></div></details>
<ul id="cases"></ul>
<button type="button" id="more" hidden>Show more</button>
)";

// The filters are in the address: #class=fail&op=relu&dtype=f32&text=strided. Cases are shown in slices.
const char* const script = R"JS(
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const kinds = ["pass", "fail", "unsupported", "excluded", "not_run"];
const slice = 200;
const at = id => document.getElementById(id);
const words = kind => kind.replace("_", " ");
const element = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

// Decodes the names: each shares a prefix with the one before.
const names = [];
for (let i = 0, name = ""; i < data.rest.length; ++i) names.push(name = name.slice(0, data.shared[i]) + data.rest[i]);

const filter = {class: "", op: "", dtype: "", text: ""};
let found = [], shown = 0;

function find() {
  const kind = filter.class ? String(kinds.indexOf(filter.class)) : "";
  const op = filter.op ? data.ops.indexOf(filter.op) : -1, dtype = filter.dtype ? data.dtypes.indexOf(filter.dtype) : -1;
  const text = filter.text.toLowerCase();
  const said = data.texts.map(t => t.toLowerCase().includes(text));  // few, since cases share texts
  const result = [];
  for (let i = 0; i < names.length; ++i) {
    if (kind && data.kinds[i] !== kind) continue;
    if (filter.op && data.op[i] !== op) continue;
    if (filter.dtype && data.dtype[i] !== dtype) continue;
    if (text && !said[data.text[i]] && !names[i].toLowerCase().includes(text)) continue;
    result.push(i);
  }
  return result;
}

function details(i, kind) {
  const more = data.more[i] || {}, body = element("div", "body");
  if (data.text[i]) body.append(element("p", "", data.texts[data.text[i]]));
  const facts = element("dl", "facts");
  const fact = (key, value) => facts.append(element("dt", "", key), element("dd", "", value));
  if (kind === "fail") {
    if (data.ops[data.op[i]]) fact("op", data.ops[data.op[i]]);
    if (data.dtypes[data.dtype[i]]) fact("dtype", data.dtypes[data.dtype[i]]);
  }
  for (const key of Object.keys(more)) if (key !== "again" && key !== "mandatory") fact(key, more[key]);
  if (kind === "fail") fact("seed", data.seed);
  if (facts.children.length) body.append(facts);
  if (more.again) {
    const line = element("div", "again"), code = element("code", "", more.again), copy = element("button", "", "Copy");
    copy.type = "button";
    copy.title = "copy the command that runs only this case";
    copy.onclick = () => {
      getSelection().selectAllChildren(code);
      if (navigator.clipboard) navigator.clipboard.writeText(more.again).catch(() => {});
      copy.textContent = "Copied";
    };
    line.append(code, copy);
    body.append(line);
  }
  return body;
}

function row(i) {
  const kind = kinds[data.kinds[i]], more = data.more[i] || {}, item = element("li", "");
  const fold = data.text[i] || data.more[i];
  const line = element(fold ? "summary" : "div", fold ? "" : "line");
  line.append(element("span", "kind " + kind, words(kind) + (more.mandatory ? " (mandatory)" : "")), element("span", "name", names[i]));
  if (!fold) {
    item.append(line);
    return item;
  }
  const folded = element("details");
  folded.append(line);
  const fill = () => { if (folded.open && folded.children.length === 1) folded.append(details(i, kind)); };
  folded.open = kind === "fail" && found.length <= slice;
  fill();
  folded.ontoggle = fill;
  item.append(folded);
  return item;
}

function show_more() {
  const rows = document.createDocumentFragment();
  for (const i of found.slice(shown, shown + slice)) rows.append(row(i));
  shown = Math.min(found.length, shown + slice);
  at("cases").append(rows);
  at("more").hidden = shown === found.length;
  at("more").textContent = "Show more (" + (found.length - shown).toLocaleString("en") + " left)";
}

function show() {
  found = find();
  shown = 0;
  at("cases").replaceChildren();
  at("count").value = found.length.toLocaleString("en") + " of " + names.length.toLocaleString("en") + " cases";
  for (const button of at("classes").children) button.setAttribute("aria-pressed", button.dataset.class === filter.class);
  for (const key of ["op", "dtype", "text"]) if (at(key).value !== filter[key]) at(key).value = filter[key];
  show_more();
}

function read_address() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(filter)) filter[key] = given.get(key) || "";
  show();
}
function apply_filter(change) {
  Object.assign(filter, change);
  const given = new URLSearchParams();
  for (const key of Object.keys(filter)) if (filter[key]) given.set(key, filter[key]);
  history.replaceState(null, "", "#" + given);
  show();
}

// How many of each class every op has; those with failures first.
function by_op() {
  const counts = data.ops.map(() => [0, 0, 0, 0, 0]), order = [1, 2, 4, 3, 0];
  for (let i = 0; i < names.length; ++i) ++counts[data.op[i]][data.kinds[i]];
  const ops = data.ops.map((_, i) => i).sort((a, b) => counts[b][1] - counts[a][1] || counts[b][2] - counts[a][2]);
  const table = element("table"), head = element("tr");
  head.append(element("th", "", "op"), ...order.map(k => element("th", "", words(kinds[k]))));
  const top = element("thead"), body = element("tbody");
  top.append(head);
  for (const op of ops) {
    const line = element("tr"), name = element("th"), button = element("button", "", data.ops[op]);
    button.type = "button";
    button.onclick = () => apply_filter({op: data.ops[op], class: ""});
    name.append(button);
    line.append(name, ...order.map(k => element("td", "", counts[op][k] || "")));
    body.append(line);
  }
  table.append(top, body);
  return table;
}

for (const [key, list] of [["op", data.ops], ["dtype", data.dtypes]])
  for (const word of list.filter(w => w).sort()) at(key).append(new Option(word, word));
for (const button of at("classes").children) button.onclick = () => apply_filter({class: button.dataset.class});
at("op").onchange = event => apply_filter({op: event.target.value});
at("dtype").onchange = event => apply_filter({dtype: event.target.value});
let typing = 0;
at("text").oninput = event => { clearTimeout(typing); typing = setTimeout(() => apply_filter({text: event.target.value}), 120); };
at("filters").onsubmit = event => event.preventDefault();
at("filters").onreset = event => { event.preventDefault(); apply_filter({class: "", op: "", dtype: "", text: ""}); };
at("more").onclick = show_more;
at("by-op").ontoggle = event => { const box = event.target.querySelector("div"); if (!box.children.length) box.append(by_op()); };
window.onhashchange = read_address;
read_address();
)JS";

}  // namespace tenon::conformance::html_report
