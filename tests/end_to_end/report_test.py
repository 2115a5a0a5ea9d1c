#!/usr/bin/env python3
"""The conformance kit's reports: the page opened and filtered in a browser, JUnit's XML parsed, the printed command run again.

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
    """What a page shows: the list's rows, the words of each element with an id, the buttons that are pressed."""

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
    """The page after its own script, and `act` behind it, have run."""
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
        print("skipped: there is no chromium (tools/setup installs it)")
        sys.exit(77)
    code, out, err = conformance("--format", "html", "--out", folder / "report.html")
    expect(code == 1, f"failures and mandatory ops that are missing end with 1, got {code}: {err}")
    expect("fail" in out and len(out.splitlines()) == 1, f"--out leaves a line of summary on the terminal, got {out!r}")
    report = json.loads(conformance("--format", "json")[1])
    page = (folder / "report.html").read_text(encoding="utf-8")

    cases = report["cases"]
    counts = report["summary"]
    for kind in ("pass", "fail", "unsupported", "excluded"):
        expect(counts[kind] > 0, f"the run has cases of class {kind}: {counts}")

    def showing(shown, wanted, what):
        expect(shown.by_id["count"].split(" of ")[0] == f"{len(wanted):,}", f"{what}: {len(wanted)} cases, the page says {shown.by_id['count']!r}")
        expect(len(shown.rows) == min(200, len(wanted)), f"{what}: {len(wanted)} rows or the first slice, got {len(shown.rows)}")
        names = {case["name"] for case in wanted}
        for row in shown.rows:
            expect(any(line in names for line in row.splitlines()), f"{what}: a row that is none of them: {row!r}")

    shown = opened(browser, page)
    showing(shown, cases, "everything")
    expect(not shown.outside, f"the page asks for nothing outside itself, got {shown.outside}")
    expect("fail" in shown.rows[0], f"failures come first, got {shown.rows[0]!r}")
    for kind, count in counts.items():
        expect(f"{count} {kind.replace('_', ' ')}" in shown.by_id["classes"], f"the summary counts {count} {kind}: {shown.by_id['classes']!r}")
    for fact in (report["sha256"], report["device"], report["version"], report["kit"]):
        expect(fact and fact in page, f"the summary names {fact!r}")

    failed = [case for case in cases if case["class"] == "fail"]
    shown = opened(browser, page, "#class=fail&op=relu")
    showing(shown, [case for case in failed if case["op"] == "relu"], "failures of relu")
    expect(shown.pressed == ["fail"], f"the button of the class is pressed, got {shown.pressed}")
    expect(failed[0]["again"] in shown.rows[0], f"a failure shows the command that runs it again: {shown.rows[0]!r}")
    showing(opened(browser, page, "#class=excluded"), [case for case in cases if case["class"] == "excluded"], "excluded")
    showing(opened(browser, page, "#dtype=f32&text=STRIDE"), [case for case in cases if "stride" in case["name"]], "a word of the name")
    showing(opened(browser, page, "#text=straight+lines"), [case for case in cases if case["class"] == "excluded"], "a word of the reason")
    showing(opened(browser, page, "#op=no_such_op"), [], "an op that is not there")

    showing(opened(browser, page, act="document.querySelector('[data-class=pass]').click()"),
            [case for case in cases if case["class"] == "pass"], "after a click on 'pass'")
    showing(opened(browser, page, act="const box = document.getElementById('text'); box.value = 'guards'; box.dispatchEvent(new Event('input'))"),
            [case for case in cases if "guards" in case["name"]], "after typing 'guards'")
    shown = opened(browser, page, act="document.getElementById('more').click()")
    expect(len(shown.rows) == min(400, len(cases)), f"'Show more' shows the second slice, got {len(shown.rows)} rows")


def check_junit(conformance, folder):
    code, _, err = conformance("--format", "junit", "--out", folder / "report.xml")
    expect(code == 1, f"wanted 1, got {code}: {err}")
    report = json.loads(conformance("--format", "json")[1])
    suite = xml.parse(folder / "report.xml").getroot().find("testsuite")
    entries = suite.findall("testcase")
    expect([entry.get("name") for entry in entries] == [case["name"] for case in report["cases"]], "one testcase a case, in their order")
    bad = [case for case in report["cases"] if case["class"] == "fail" or (case["class"] == "unsupported" and case["mandatory"])]
    expect(int(suite.get("failures")) == len(bad) == len(suite.findall("testcase/failure")), f"{len(bad)} failures, got {suite.get('failures')}")
    expect(int(suite.get("tests")) == len(entries), "the count of tests")
    expect(int(suite.get("skipped")) == len(suite.findall("testcase/skipped")) > 0, "the count of those skipped")
    failed = next(case for case in report["cases"] if case["class"] == "fail")
    text = next(entry for entry in entries if entry.get("name") == failed["name"]).find("failure").text
    expect(failed["again"] in text, f"the command that runs it again is in its text: {text!r}")


def check_again(conformance, folder):
    """The printed command, as a shell runs it in another folder, shows the same failure."""
    code, out, _ = conformance("--format", "json")
    failed = next(case for case in json.loads(out)["cases"] if case["class"] == "fail")
    environment = dict(os.environ, PATH=f"{conformance.tenon.parent}:{os.environ['PATH']}")
    code, out, err = run("sh", "-c", failed["again"] + " --format json", cwd=folder, env=environment)
    expect(code == 1, f"{failed['again']}: wanted 1, got {code}: {err}")
    cases = json.loads(out)["cases"]
    expect([case["name"] for case in cases] == [failed["name"]], f"one case, got {[case['name'] for case in cases]}")
    expect(cases[0]["text"] == failed["text"], f"the same sentence, got {cases[0]['text']!r}")


def check_list(conformance, folder):
    code, out, err = conformance("--list")
    expect(code == 0 and not err, f"the kit is complete, got {code}: {err}")
    cases = json.loads(conformance("--format", "json", "--jobs", "2")[1])["cases"]
    expect(out.splitlines() == [case["name"] for case in cases], "the list is what is run, in its order")


def check_usage(conformance, folder):
    """Exit code 2 is for wrong use; 1 is for what cannot be judged and what fails."""
    for arguments in (["--profile", "everything"], ["--format", "yaml"], ["--knob", "threads"], ["--jobs", "0"]):
        code, _, err = conformance(*arguments)
        expect(code == 2 and err, f"{arguments}: wanted 2 and a word, got {code}: {err!r}")
    code, out, err = conformance("--knob", "no_such_knob=1")
    expect(code == 1 and "unknown knob 'no_such_knob'" in err, f"wanted 1 and the knob's name, got {code}: {err!r}")
    code, out, err = conformance("--out", folder / "absent" / "report.txt")
    expect(code == 1 and "its folder is not there" in err, f"wanted 1 and the reason, got {code}: {err!r}")


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
