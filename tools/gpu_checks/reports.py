# SPDX-License-Identifier: Apache-2.0
"""Text, JUnit and figures from what the test programs write."""
import json
import os
import re
import xml.etree.ElementTree as xml

from gpu_checks.machine import first_match


def conformance_reports(out, name):
    """Writes text and JUnit from the JSON of the kit; returns the number of cases of each class."""
    path = os.path.join(out, name + ".json")
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    counts = report["summary"]
    suite = xml.Element("testsuite", name=name, tests=str(len(report["cases"])), failures=str(counts["fail"] + counts["unsupported"]),
                        skipped=str(counts["excluded"] + counts["not_run"]))
    unprintable = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")
    with open(os.path.join(out, name + ".txt"), "a", encoding="utf-8") as log:
        for case in report["cases"]:
            entry = xml.SubElement(suite, "testcase", classname=name, name=case["name"])
            if case["class"] == "pass":
                continue
            message = case["text"] + (f"; again: {case['again']}" if "again" in case else "")
            log.write(f"{case['class'].upper():12} {case['name']}: {message}\n")
            kind = "failure" if case["class"] in ("fail", "unsupported") else "skipped"
            xml.SubElement(entry, kind, message=case["class"]).text = unprintable.sub("?", message)
        log.write(f"{report['backend']} {report['version']} on {report['device']}, profile {report['profile']}, seed {report['seed']}: "
                  + ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items()) + "\n")
    xml.ElementTree(suite).write(os.path.join(out, name + ".junit.xml"), encoding="utf-8", xml_declaration=True)
    return counts if report["complete"] else {**counts, "incomplete": True}


def unit_counts(out, name):
    """The counts of doctest's last line, which are also written as JSON."""
    line = first_match(os.path.join(out, name + ".txt"), r"^(\[doctest\] test cases:.*)$")
    counts = {kind: int(count) for count, kind in re.findall(r"(\d+) (passed|failed|skipped)", line or "")}
    with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as file:
        json.dump(counts, file)
    return counts
