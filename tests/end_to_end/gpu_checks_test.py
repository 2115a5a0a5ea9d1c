#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_checks_test.py tools/run-gpu-checks [TEST...]: what the script does on machines where programs crash, hang, or time runs out. The programs are
shell scripts that do so."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SCRIPT.parent))

HEALTHY = json.dumps({"backends": [{"name": "cuda", "state": "healthy", "devices": [{"name": "cuda:0", "description": "a GPU"}]}]})
# What the kit writes to its file --out.
REPORT = json.dumps({"backend": "cuda", "version": "1", "device": "cuda:0", "profile": "core", "seed": 1, "complete": False,
                     "summary": {"pass": 1, "fail": 1, "unsupported": 0, "excluded": 0, "not_run": 1},
                     "cases": [{"name": "a", "class": "pass", "text": ""}, {"name": "b", "class": "fail", "text": "wrong"}]})


class GpuChecks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out, self.log = self.folder / "results", self.folder / "log"
        self.environment = {"PATH": str(self.folder / "path"), "LOG": str(self.log), "PYTHONDONTWRITEBYTECODE": "1"}
        self.fake("path/nvidia-smi", "exit 1")
        self.tenon()

    def fake(self, name, code):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{code}\n")
        path.chmod(0o755)

    def tenon(self, **verbs):
        """A program `tenon`, which notes its arguments, then runs the code of its verb."""
        verbs = {"backends": f"echo '{HEALTHY}'", **verbs}
        cases = "".join(f"{verb})\n{code}\n;;\n" for verb, code in verbs.items())
        self.fake("tree/bin/tenon", f'echo "$@" >>"$LOG"\ncase "$1" in\n{cases}esac')

    def run_script(self, *arguments):
        """(exit code, all that it prints)"""
        command = [sys.executable, str(SCRIPT), "--tree", str(self.folder / "tree"), "--out", str(self.out), *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, env=self.environment, check=False)
        return done.returncode, done.stdout

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def check(self, name):
        return next(check for check in self.summary()["checks"] if check["name"] == name)

    def earlier(self, states, **facts):
        """The summary of an earlier call."""
        self.out.mkdir(exist_ok=True)
        checks = [{"name": name, "state": state, "reason": "as before"} for name, state in states.items()]
        facts = {"bundle": {}, "backend": "cuda", "tiny": False, **facts}
        (self.out / "summary.json").write_text(json.dumps({**facts, "checks": checks}))

    def lines_with(self, text):
        return [line for line in self.log.read_text().splitlines() if text in line] if self.log.exists() else []

    # The checks.

    def test_options_that_are_off_by_default_come_before_the_long_suites(self):
        names = self.run_script("--list")[1].split()
        for name in ("rnn_cooperative", "lstm_cooperative", "gemm_early", "optimizer_early", "softmax_cross_entropy_early"):
            self.assertLess(names.index("conformance_" + name), names.index("conformance_core"))
        self.run_script("--only", "conformance_gemm_early")
        self.assertEqual(len(self.lines_with("--family gemm --backend-option programmatic_launch=on")), 1)

    def test_a_case_that_hangs_has_a_limit_below_that_of_the_check(self):
        self.run_script("--only", "conformance_rnn_cooperative,conformance_core")
        self.assertIn("--timeout 30", self.lines_with("recurrent=cooperative")[0])
        self.assertIn("--timeout 60", self.lines_with("--profile core")[0])
        self.run_script("--only", "conformance_ops", "--limit", 16)  # what starts slowly does not hang
        self.assertIn("--timeout 10", self.lines_with("--profile ops")[-1])

    def test_the_report_of_the_kit_is_that_of_this_call(self):
        self.tenon(conformance=f"""for word in "$@"; do [ "$last" = --out ] && echo '{REPORT}' >"$word"; last=$word; done""")
        self.assertEqual(self.run_script("--only", "conformance_core")[0], 1)
        self.assertEqual((self.check("conformance_core")["state"], self.check("conformance_core")["figures"]["fail"]), ("timeout", 1))
        self.assertIn("FAIL         b: wrong", (self.out / "conformance_core.txt").read_text())
        self.tenon(conformance="exit 3")
        self.run_script("--only", "conformance_core", "--resume")
        self.assertEqual((self.check("conformance_core")["state"], self.check("conformance_core").get("figures")), ("fail", None))

    def test_a_step_without_a_device_hides_no_failure(self):
        self.tenon(doctor="[ $# -eq 1 ] && exit 1; exit 77", devices="exit 77")
        self.assertEqual(self.run_script("--only", "doctor,devices")[0], 1)
        self.assertEqual((self.check("doctor")["state"], self.check("devices")["state"]), ("fail", "not run"))

    def test_pytorch_is_imported_only_for_checks_that_compare_with_it_and_until_one_finds_a_gpu(self):
        for name in ("python3", "python"):
            self.fake("path/" + name, f'exec {sys.executable} "$@"')
        (self.folder / "modules").mkdir()
        self.environment["PYTHONPATH"] = str(self.folder / "modules")
        torch = self.folder / "modules/torch.py"
        torch.write_text("import os, types\nopen(os.environ['LOG'], 'a').write('import torch\\n')\n"
                         "cuda = types.SimpleNamespace(is_available=lambda: True)\n")
        self.run_script("--list")
        self.run_script("--only", "conformance_core,bench_bandwidth")
        self.assertEqual(self.lines_with("import torch"), [])
        self.run_script("--only", "bench_gemm,bench_crossing")
        self.assertEqual(len(self.lines_with("import torch")), 1)
        self.assertEqual(len(self.lines_with("--python " + sys.executable)), 2)
        torch.write_text("raise ImportError\n")
        self.run_script("--only", "bench_fusion")
        self.assertNotIn("--python", self.lines_with("bench fusion")[0])

    # The machine.

    def test_a_broken_list_of_backends_is_a_reason_and_the_doctor_still_runs(self):
        for code, reason in (("echo broken >&2; kill -SEGV $$", "killed by signal 11 (SIGSEGV); broken"), ("echo no list", "unexpected output"),
                             ("exit 3", "exit code 3"), ("echo '{\"backends\": [{}]}'", "unexpected output: KeyError('name')")):
            self.tenon(backends=code)
            status, text = self.run_script("--only", "doctor,bench_gemm", "--archive", self.folder / "all.tar.gz")
            self.assertEqual(status, 1, text)
            self.assertIn("no cuda device: tenon backends: " + reason, text)
            self.assertIn(reason, self.summary()["no_device_reason"])
            self.assertEqual((self.check("doctor")["state"], self.check("bench_gemm")["state"]), ("pass", "not run"))
            with tarfile.open(self.folder / "all.tar.gz") as archive:
                self.assertIn("results/doctor.txt", archive.getnames())

    def test_a_list_of_backends_that_hangs_has_the_limit_of_the_budget(self):
        self.tenon(backends="exec /bin/sleep 60", doctor="exit 0")
        from gpu_checks.machine import devices_of
        devices = devices_of(str(self.folder / "tree/bin/tenon"), "cuda", self.environment, 0.2)
        self.assertEqual((devices.found, devices.reason, devices.broken), ([], "tenon backends: timed out after 0.2 s", True))

    def test_a_gpu_for_one_process_gets_one(self):
        self.fake("path/nvidia-smi", 'echo "$@" >>"$LOG"\necho "name, compute_mode, mig.mode.current"\necho "A, Exclusive_Process, [N/A]"')
        text = self.run_script("--only", "conformance_core")[1]
        self.assertIn("Exclusive_Process, so that a conformance check has one process", text)
        self.assertIn("--jobs 1 ", self.lines_with("--profile core")[0])
        self.assertIn("compute_mode,mig.mode.current,persistence_mode", self.lines_with("--query-gpu")[0])
        self.run_script("--only", "conformance_core", "--jobs", 3)
        self.assertIn("--jobs 3 ", self.lines_with("--profile core")[1])
        from gpu_checks.machine import for_one_process
        for nvidia_smi, expected in ((None, False), ("", False), ("name\nA\n", False), ("name, compute_mode\nA, Default\n", False),
                                     ("name, compute_mode\nA, Default\nB, Exclusive_Process\n", True)):
            self.assertEqual(for_one_process({"nvidia_smi": nvidia_smi}), expected)

    def test_a_library_that_the_backend_can_do_without_is_optional(self):
        (self.folder / "tree/bundle.json").write_text(json.dumps({"vendor_libraries": ["liba.so.1"], "optional_vendor_libraries": ["libb.so.2"]}))
        (self.folder / "lib").mkdir()
        (self.folder / "lib/libb.so.3").touch()
        self.environment["LD_LIBRARY_PATH"] = str(self.folder / "lib")
        text = self.run_script("--only", "doctor")[1]
        self.assertIn("liba.so.1          not found (no other version found)\n", text)
        self.assertIn(f"libb.so.2          not found ({self.folder}/lib/libb.so.3); optional\n", text)

    # The budget, and what is resumed.

    def test_a_check_has_half_of_the_budget_while_others_wait(self):
        self.run_script("--only", "doctor,devices", "--budget", 40)
        self.assertLess(self.check("doctor")["limit_s"], 20.1)
        self.assertGreater(self.check("devices")["limit_s"], 30)
        self.assertEqual(self.run_script("--only", "doctor", "--budget", 40, "--limit", 2)[0], 0)
        self.assertEqual(self.check("doctor")["state"], "pass")
        from gpu_checks.budget import Budget
        self.assertEqual(Budget(None).limit_of(540, True), 540)
        self.assertEqual(round(Budget(8).limit_of(540, True)), 5)  # half is too little to start with
        self.assertEqual(Budget(4).limit_of(540, True), None)

    def test_results_of_another_program_or_other_sizes_are_not_resumed(self):
        (self.folder / "tree/bundle.json").write_text(json.dumps({"commit": "b", "vendor_libraries": []}))
        for facts, expected in (({"bundle": {"commit": "a"}}, "expected results of the commit b, got a"),
                                ({"backend": "reference"}, "expected results with backend cuda, got reference"),
                                ({"tiny": True}, "expected results with tiny False, got True")):
            self.earlier({"doctor": "pass"}, **{"bundle": {"commit": "b"}, **facts})
            status, text = self.run_script("--only", "doctor", "--resume")
            self.assertEqual(status, 2, text)
            self.assertIn(expected, text)
            self.assertEqual(self.lines_with("doctor"), [])
        (self.out / "summary.json").write_text('{"checks": [{"name"')
        self.assertEqual(self.run_script("--only", "doctor", "--resume")[0], 2)
        self.earlier({"doctor": "pass"}, bundle={"commit": "b"})
        self.assertEqual(self.run_script("--only", "doctor", "--resume")[0], 0)
        self.assertEqual(self.lines_with("doctor"), [])

    def test_checks_that_were_never_started_come_before_those_that_ran_out_of_time(self):
        self.earlier({"doctor": "timeout", "devices": "not run", "roofs": "timeout"})
        self.assertEqual(self.run_script("--only", "doctor,devices", "--resume", "--budget", 0)[0], 1)
        self.assertEqual([self.check(name)["state"] for name in ("doctor", "devices", "roofs")], ["timeout", "not run", "timeout"])
        self.run_script("--only", "doctor,devices", "--resume")
        self.assertEqual([line.split()[0] for line in self.lines_with("--format json") if "backends" not in line], ["devices", "doctor"])
        self.assertEqual([self.check(name)["state"] for name in ("doctor", "devices", "roofs")], ["pass", "pass", "timeout"])

    def test_a_check_that_the_script_does_not_survive_comes_last(self):
        self.tenon(doctor="kill -KILL $PPID")
        self.assertEqual(self.run_script("--only", "doctor,devices")[0], -signal.SIGKILL)
        self.assertIn("interrupted", self.check("doctor")["reason"])
        self.run_script("--only", "doctor,devices", "--resume")
        self.assertEqual(self.check("devices")["state"], "pass")

    # Processes and files.

    def test_a_process_that_cannot_be_killed_keeps_only_the_device(self):
        (self.folder / "modules").mkdir()
        (self.folder / "modules/sitecustomize.py").write_text(
            f"import os, sys\nos.killpg = lambda *_: None\nsys.path.insert(0, {str(SCRIPT.parent)!r})\n"
            "from gpu_checks import process\nprocess.KILL_GRACE_S = 0.2\n")
        self.environment["PYTHONPATH"] = str(self.folder / "modules")
        self.tenon(conformance='echo $$ >"$LOG.pid"; exec /bin/sleep 20', doctor="exit 0")
        self.fake("tree/bin/tenon_cuda_roofs", "exit 0")
        self.earlier({"doctor": "timeout"})
        status, text = self.run_script("--only", "doctor,conformance_core,bench_gemm", "--resume", "--limit", 1)
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(Path(f"{self.log}.pid").read_text()), signal.SIGKILL)
        self.assertEqual(status, 1, text)
        self.assertEqual(self.check("conformance_core")["reason"], "timed out after 1 s, and the process cannot be killed")
        self.assertEqual(self.check("bench_gemm")["reason"], "a process of conformance_core cannot be killed")
        self.assertEqual(self.check("doctor")["state"], "pass")

    def test_a_limit_holds_for_the_children_of_a_program(self):
        self.tenon(doctor='/bin/sleep 20 & echo $! >"$LOG.pid"; wait')
        self.run_script("--only", "doctor", "--limit", 0.5)
        self.assertEqual(self.check("doctor")["reason"], "timed out after 0.5 s")
        state = Path(f"/proc/{int(Path(f'{self.log}.pid').read_text())}/stat")
        self.assertTrue(not state.exists() or state.read_text().split()[2] == "Z")

    def test_an_archive_is_in_a_folder_that_is_made_and_not_in_itself(self):
        for path in (self.folder / "new/all.tar.gz", self.out / "all.tar.gz"):
            self.assertEqual(self.run_script("--only", "doctor,devices", "--archive", path)[0], 0)
            with tarfile.open(path) as archive:
                names = archive.getnames()
            self.assertTrue({"results/summary.json", "results/doctor.txt", "results/devices.txt"} <= set(names), names)
            self.assertFalse([name for name in names if "all.tar.gz" in name])

    def test_an_archive_that_cannot_be_written_stops_nothing(self):
        self.tenon(doctor=f"/bin/rm -rf {self.folder}/new")
        status, text = self.run_script("--only", "doctor,devices", "--archive", self.folder / "new/all.tar.gz")
        self.assertEqual(status, 0, text)
        self.assertIn("No such file or directory", text)
        self.assertEqual(self.check("devices")["state"], "pass")
        status, text = self.run_script("--only", "doctor", "--archive", self.folder)
        self.assertEqual(status, 2, text)
        self.assertIn("it is a folder, expected a file", text)


if __name__ == "__main__":
    unittest.main()
