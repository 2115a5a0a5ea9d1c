# SPDX-License-Identifier: Apache-2.0
"""Reads the archived binaries of released ABIs: tests/abi/archive/<version>, whose SHA256SUMS has the sums of the unpacked files."""
import hashlib
import lzma
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ARCHIVE = Path(__file__).resolve().parent / "archive"
SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def unpacked(folder, out):
    """Writes the files of a folder of the archive, archive/<version>/<folder>, into `out`, compared with their sums; returns `out`."""
    folder, out = Path(folder).resolve(), Path(out)
    release = ARCHIVE / folder.relative_to(ARCHIVE).parts[0]
    if platform.machine() != "x86_64":
        skip(f"the archive is for x86_64, this is {platform.machine()}")
    found = False
    for line in (release / "SHA256SUMS").read_text().splitlines():
        expected, name = line.split()
        path = release / name
        if not path.is_relative_to(folder):
            continue
        packed = path.with_name(path.name + ".xz")
        data = lzma.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
        if hashlib.sha256(data).hexdigest() != expected:
            sys.exit(f"{path} is not what was archived: expected SHA-256 {expected}")
        file = out / path.relative_to(folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755)
        found = True
    for waivers in folder.glob("*.conformance.yaml"):
        shutil.copy(waivers, out)
    if not found:
        sys.exit(f"{folder} has no archived files")
    return out


# A library of another system, or a version of one, that is missing here: not one of Tenon's.
FOREIGN = re.compile(r"error while loading shared libraries: (?!libtenon)|version `(?!TENON)\w+[\d.]+' not found")


def run(command, **options):
    """Runs a program of the archive or on an archived plugin. Where the libraries of its system are not there, the test is skipped."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode and FOREIGN.search(done.stdout + done.stderr):
        skip(f"the archived files need another system: {done.stdout}{done.stderr}")
    return done
