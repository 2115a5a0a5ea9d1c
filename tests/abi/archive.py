#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archived binaries of a release of the ABI: tests/abi/archive/<version>.

  archive.py RELEASE OUT    unpacks binaries.tar.xz of the release into OUT, compared with SHA256SUMS, and the waivers of its plugins
"""
import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def skip_elsewhere():
    if platform.machine() != "x86_64":
        skip(f"the archive is for x86_64, this is {platform.machine()}")


def unpack(release, out):
    sums = dict(reversed(line.split()) for line in (release / "SHA256SUMS").read_text().splitlines())
    with tarfile.open(release / "binaries.tar.xz") as packed:
        for member in packed:
            if not member.isfile():
                continue
            data = packed.extractfile(member).read()
            if hashlib.sha256(data).hexdigest() != sums.pop(member.name, None):
                sys.exit(f"{release}: {member.name} is not what was archived: its SHA-256 is not that of SHA256SUMS")
            file = out / member.name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            file.write_bytes(data)
            file.chmod(0o755)
    if sums:
        sys.exit(f"{release}: expected {', '.join(sums)} in binaries.tar.xz")
    for waivers in release.glob("*/*.conformance.yaml"):
        shutil.copy(waivers, out / waivers.relative_to(release))


# A library of another system, or a version of one, that is missing here: not one of Tenon's.
FOREIGN = re.compile(r"error while loading shared libraries: (?!libtenon)|version `(?!TENON)\w+[\d.]+' not found")


def run(command, **options):
    """Runs a program of the archive or on an archived plugin. Where the libraries of its system are not there, the test is skipped."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode and FOREIGN.search(done.stdout + done.stderr):
        skip(f"the archived files need another system: {done.stdout}{done.stderr}")
    return done


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    skip_elsewhere()
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
