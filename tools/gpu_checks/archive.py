# SPDX-License-Identifier: Apache-2.0
"""The archive of the results (--archive)."""
import os
import tarfile

from gpu_checks.results import write_whole


def prepare(path):
    """Makes the folder of an archive. Returns why there cannot be one at `path`, or None."""
    if os.path.isdir(path):
        return "it is a folder, expected a file"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    except OSError as error:
        return str(error)
    return None


def write(path, folder):
    """Writes the files of `folder`, without the archive itself. Errors: OSError."""
    name = os.path.basename(folder)
    itself = os.path.join(name, os.path.relpath(os.path.realpath(path), os.path.realpath(folder)))

    def pack(part):
        with tarfile.open(part, "w:gz", compresslevel=3) as packed:
            packed.add(folder, arcname=name, filter=lambda entry: None if entry.name in (itself, itself + ".part") else entry)

    write_whole(path, pack)
