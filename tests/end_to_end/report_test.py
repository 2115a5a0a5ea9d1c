#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the reports of the conformance kit: opens and filters the page in a browser, parses the JUnit XML, runs the printed command.

Usage  report_test.py TENON PLUGIN page|junit|again|list|usage
PLUGIN is the template, which has two ops: some cases pass, most are unsupported, and waivers make excluded cases and failures.
"""
import collections
import html.parser
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

WAIVERS = """
unsupported:
  - {match: 'sigmoid/*', reason: "a device of </script> & straight lines"}
expected_failures:
  - {match: 'relu/f32(7)/*d*', reason: to be seen as unexpected passes}
"""
FILTER = "*/f32(7)/*"


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def expect(condition, message):
    if not condition:
        sys.exit(f"FAIL: {message}")


class Page(html.parser.HTMLParser):
    """The content of a page: the rows of the list, the text of each element with an id, the pressed buttons."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.by_id, self.pressed, self.stack, self.outside = [], collections.defaultdict(str), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.outside += [v for k, v in attributes if k in ("src", "href") and v]
        if tag == "li":
            self.rows.append("")
        if given.get("aria-pressed") == "true":
            self.pressed.append(given.get("data-class"))
        if tag not in ("meta", "input", "br", "link"):
            self.stack.append((tag, given.get("id")))

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self.stack:
            if name:
                self.by_id[name] += data
        if self.rows and any(tag == "li" for tag, _ in self.stack):
            self.rows[-1] += data + "\n"


def opened(browser, page, address="", act=""):
    """The page after its own script and then `act` have run."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(page + (f"<script>{act}</script>" if act else ""), encoding="utf-8")
        code, out, err = run(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
                             "--virtual-time-budget=3000", "--dump-dom", file.as_uri() + address, timeout=200)
    expect(code == 0, f"{browser} ended with {code}: {err}")
    return Page(out)


def check_page(conformance, folder):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("skipped: chromium not found; tools/setup installs it")
        sys.exit(77)
    code, out, err = conformance("--format", "html", "--out", folder / "report.html")
    expect(code == 1, f"expected exit code 1 for failures and missing mandatory ops, got {code}: {err}")
    expect("fail" in out and len(out.splitlines()) == 1, f"expected --out to print one summary line, got {out!r}")
    report = json.loads(conformance("--format", "json")[1])
    page = (folder / "report.html").read_text(encoding="utf-8")

    cases = report["cases"]
    counts = report["summary"]
    for kind in ("pass", "fail", "unsupported", "excluded"):
        expect(counts[kind] > 0, f"expected cases of class {kind}, got {counts}")

    def showing(shown, expected, what):
        expect(shown.by_id["count"].split(" of ")[0] == f"{len(expected):,}", f"{what}: expected {len(expected)} cases, got {shown.by_id['count']!r}")
        expect(len(shown.rows) == min(200, len(expected)), f"{what}: expected {len(expected)} rows or the first slice, got {len(shown.rows)}")
        names = {case["name"] for case in expected}
        for row in shown.rows:
            expect(any(line in names for line in row.splitlines()), f"{what}: unexpected row {row!r}")

    shown = opened(browser, page)
    showing(shown, cases, "everything")
    expect(not shown.outside, f"expected no external resources, got {shown.outside}")
    expect("fail" in shown.rows[0], f"expected failures first, got {shown.rows[0]!r}")
    for kind, count in counts.items():
        expect(f"{count} {kind.replace('_', ' ')}" in shown.by_id["classes"], f"expected {count} {kind} in the summary, got {shown.by_id['classes']!r}")
    for fact in (report["sha256"], report["device"], report["version"], report["kit"]):
        expect(fact and fact in page, f"expected {fact!r} in the summary")

    failed = [case for case in cases if case["class"] == "fail"]
    shown = opened(browser, page, "#class=fail&op=relu")
    showing(shown, [case for case in failed if case["op"] == "relu"], "failures of relu")
    expect(shown.pressed == ["fail"], f"expected the button of the class to be pressed, got {shown.pressed}")
    expect(failed[0]["again"] in shown.rows[0], f"expected the command that reruns the failure, got {shown.rows[0]!r}")
    showing(opened(browser, page, "#class=excluded"), [case for case in cases if case["class"] == "excluded"], "excluded")
    showing(opened(browser, page, "#dtype=f32&text=STRIDE"), [case for case in cases if "stride" in case["name"]], "a word of the name")
    showing(opened(browser, page, "#text=straight+lines"), [case for case in cases if case["class"] == "excluded"], "a word of the reason")
    showing(opened(browser, page, "#op=no_such_op"), [], "an op that is not there")

    showing(opened(browser, page, act="document.querySelector('[data-class=pass]').click()"),
            [case for case in cases if case["class"] == "pass"], "after a click on 'pass'")
    showing(opened(browser, page, act="const box = document.getElementById('text'); box.value = 'guards'; box.dispatchEvent(new Event('input'))"),
            [case for case in cases if "guards" in case["name"]], "after typing 'guards'")
    shown = opened(browser, page, act="document.getElementById('more').click()")
    expect(len(shown.rows) == min(400, len(cases)), f"expected 'Show more' to show the second slice, got {len(shown.rows)} rows")


def check_junit(conformance, folder):
    code, _, err = conformance("--format", "junit", "--out", folder / "report.xml")
    expect(code == 1, f"expected 1, got {code}: {err}")
    report = json.loads(conformance("--format", "json")[1])
    suite = xml.parse(folder / "report.xml").getroot().find("testsuite")
    entries = suite.findall("testcase")
    expect([entry.get("name") for entry in entries] == [case["name"] for case in report["cases"]], "expected one testcase per case, in order")
    bad = [case for case in report["cases"] if case["class"] == "fail" or (case["class"] == "unsupported" and case["mandatory"])]
    expect(int(suite.get("failures")) == len(bad) == len(suite.findall("testcase/failure")), f"expected {len(bad)} failures, got {suite.get('failures')}")
    expect(int(suite.get("tests")) == len(entries), "wrong number of tests")
    expect(int(suite.get("skipped")) == len(suite.findall("testcase/skipped")) > 0, "wrong number of skipped tests")
    failed = next(case for case in report["cases"] if case["class"] == "fail")
    text = next(entry for entry in entries if entry.get("name") == failed["name"]).find("failure").text
    expect(failed["again"] in text, f"expected the rerun command in the text, got {text!r}")


def check_again(conformance, folder):
    """The printed command shows the same failure when a shell runs it in another folder."""
    code, out, _ = conformance("--format", "json")
    failed = next(case for case in json.loads(out)["cases"] if case["class"] == "fail")
    environment = dict(os.environ, PATH=f"{conformance.tenon.parent}:{os.environ['PATH']}")
    code, out, err = run("sh", "-c", failed["again"] + " --format json", cwd=folder, env=environment)
    expect(code == 1, f"{failed['again']}: expected 1, got {code}: {err}")
    cases = json.loads(out)["cases"]
    expect([case["name"] for case in cases] == [failed["name"]], f"expected one case, got {[case['name'] for case in cases]}")
    expect(cases[0]["text"] == failed["text"], f"expected the same message, got {cases[0]['text']!r}")


def check_list(conformance, folder):
    code, out, err = conformance("--list")
    expect(code == 0 and not err, f"expected a complete kit, got {code}: {err}")
    cases = json.loads(conformance("--format", "json", "--jobs", "2")[1])["cases"]
    expect(out.splitlines() == [case["name"] for case in cases], "expected the list to equal the cases that run, in order")


def check_usage(conformance, folder):
    """Exit code 2 is for usage errors; 1 is for failures and for runs that cannot start."""
    for arguments in (["--profile", "everything"], ["--format", "yaml"], ["--backend-option", "threads"], ["--jobs", "0"]):
        code, _, err = conformance(*arguments)
        expect(code == 2 and err, f"{arguments}: expected 2 and a message, got {code}: {err!r}")
    code, out, err = conformance("--backend-option", "no_such_option=1")
    expect(code == 1 and "unknown option 'no_such_option'" in err, f"expected 1 and the option's name, got {code}: {err!r}")
    code, out, err = conformance("--out", folder / "absent" / "report.txt")
    expect(code == 1 and "its folder does not exist" in err, f"expected 1 and the reason, got {code}: {err!r}")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tenon, plugin, claim = Path(sys.argv[1]).absolute(), sys.argv[2], sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        waivers = Path(folder) / "waivers for 'template'.yaml"
        waivers.write_text(WAIVERS, encoding="utf-8")

        def conformance(*arguments):
            return run(str(tenon), "conformance", "--plugin", plugin, "--profile", "ops", "--filter", FILTER, "--waivers", str(waivers),
                       *map(str, arguments), timeout=250)

        conformance.tenon = tenon
        {"page": check_page, "junit": check_junit, "again": check_again, "list": check_list, "usage": check_usage}[claim](conformance, Path(folder))


if __name__ == "__main__":
    main()
