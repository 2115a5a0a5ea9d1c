# SPDX-License-Identifier: Apache-2.0
"""Where CUDA's libraries are: those of the system, a toolkit folder or Python's nvidia wheels."""
import glob
import os
import shutil
import sys

from gpu_checks.process import output_of


def site_folders():
    """The package folders of the available Python interpreters."""
    folders = []
    ask = "import sys; print('\\n'.join(sys.path))"
    for python in dict.fromkeys(filter(None, (sys.executable, shutil.which("python3"), shutil.which("python")))):
        folders += (output_of([python, "-c", ask]) or "").splitlines()
    for root in filter(None, (os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"), "/opt/*", os.path.expanduser("~/.local"))):
        folders += glob.glob(os.path.join(root, "lib/python3*/site-packages"))
    return folders


def library_folders():
    """(folder, origin) pairs by priority. A folder may occur twice."""
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        yield folder, "LD_LIBRARY_PATH"
    ldconfig = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    for line in (output_of([ldconfig, "-p"]) or "").splitlines() if ldconfig else ():
        if " => " in line:
            yield os.path.dirname(line.split(" => ")[1]), "system"
    toolkits = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    toolkits += ["/usr/local/cuda"] + sorted(glob.glob("/usr/local/cuda-*"), reverse=True) + sorted(glob.glob("/opt/cuda*"), reverse=True)
    for toolkit in filter(None, toolkits):
        for below in ("lib64", "lib", "targets/*/lib"):
            for folder in glob.glob(os.path.join(toolkit, below)):
                yield folder, "toolkit"
    for site in site_folders():
        for folder in sorted(glob.glob(os.path.join(site, "nvidia/*/lib"))):
            yield folder, "Python wheel"


def find_libraries(required, optional):
    """For each name the first file of that name, or None and the other versions found."""
    folders = {}
    for folder, origin in library_folders():
        folders.setdefault(os.path.abspath(folder), origin)
    found = {}
    for name in (*required, *optional):
        stem = name.split(".so")[0] + ".so"
        here = next((f for f in folders if os.path.isfile(os.path.join(f, name))), None)
        if here:
            found[name] = {"file": os.path.realpath(os.path.join(here, name)), "folder": here, "origin": folders[here]}
        else:
            others = sorted({path for f in folders for path in glob.glob(os.path.join(glob.escape(f), stem + ".*"))})
            found[name] = {"file": None, "others": others}
        if name in optional:
            found[name]["optional"] = True
    return found


def description(entry):
    """What find_libraries() has found, in words."""
    if entry["file"]:
        return f"{entry['file']} ({entry['origin']})"
    others = ", ".join(entry["others"]) or "no other version found"
    return f"not found ({others})" + ("; optional" if "optional" in entry else "")


def search_path(libraries):
    """LD_LIBRARY_PATH with the folders that the dynamic linker does not search by itself."""
    folders = [entry["folder"] for entry in libraries.values() if entry["file"] and entry["origin"] != "system"]
    folders += filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    return ":".join(dict.fromkeys(folders))
