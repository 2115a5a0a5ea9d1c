#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libtenon exports what its public headers declare and leave to the library to define, and nothing else, and that they mark no
class TENON_API of which the library defines nothing.

  public_api.py --core libtenon.so --headers DIRECTORY... [--clang clang++]

Each DIRECTORY has a folder tenon/ with public headers. Clang's syntax tree of <tenon/tenon.h> lists the functions without a body in namespace
tenon. The library exports these, the instantiations of templates among them, and vtables and typeinfos of public classes.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys

FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl"}
SCOPES = {"NamespaceDecl", "CXXRecordDecl", "FriendDecl", "LinkageSpecDecl"}
OF_CLASS = re.compile(r"(?:vtable|typeinfo|typeinfo name) for (.+)")


def run(*command, text=None):
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr.strip()}")
    return result.stdout


def demangled(names):
    return run("c++filt", text="\n".join(names)).splitlines()


class Declarations:
    """What the headers declare in namespace tenon."""

    def __init__(self, clang, headers):
        self.functions, self.templates, self.classes, self.marked = set(), set(), set(), {}
        bodies = set()
        tree = run(clang, "-std=c++20", "-fsyntax-only", *(f"-I{folder}" for folder in headers), "-Xclang", "-ast-dump=json",
                   "-Xclang", "-ast-dump-filter=tenon", "-xc++", "-", text="#include <tenon/tenon.h>\n")
        decoder, blank, at = json.JSONDecoder(), re.compile(r"\s*"), 0
        while (at := blank.match(tree, at).end()) < len(tree):
            node, at = decoder.raw_decode(tree, at)
            if node["kind"] == "NamespaceDecl" and node["name"] == "tenon":
                self._walk(node, "tenon", bodies)
        self.functions -= bodies
        self.needless = sorted(name for name, members in self.marked.items() if not members & self.functions)
        self.functions = set(demangled(self.functions))

    def _walk(self, scope, path, bodies):
        """Collects what a scope declares; returns the functions in it."""
        found = set()
        for node in scope.get("inner", []):
            kind, name = node.get("kind"), node.get("name", "")
            has_body = any(child.get("kind") == "CompoundStmt" for child in node.get("inner", []))
            if kind in FUNCTIONS and "mangledName" in node and not node.get("isImplicit"):
                found.add(node["mangledName"])
                if has_body:
                    bodies.add(node["mangledName"])
                elif not (node.get("explicitlyDefaulted") or node.get("explicitlyDeleted") or node.get("pure")):
                    self.functions.add(node["mangledName"])
            elif kind == "FunctionTemplateDecl":
                if not any(child.get("kind") == "CompoundStmt" for f in node["inner"] for child in f.get("inner", [])):
                    self.templates.add(f"{path}::{name}")
            elif kind in SCOPES:
                members = self._walk(node, f"{path}::{name}" if name else path, bodies)
                found |= members
                if kind != "CXXRecordDecl":
                    continue
                self.classes.add(f"{path}::{name}")
                is_polymorphic = node.get("definitionData", {}).get("isPolymorphic")
                if node.get("completeDefinition") and not is_polymorphic and any(
                        child["kind"] == "VisibilityAttr" for child in node["inner"]):
                    self.marked[f"{path}::{name}"] = members
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", required=True)
    parser.add_argument("--headers", nargs="+", required=True)
    parser.add_argument("--clang", default="clang++")
    arguments = parser.parse_args()
    if shutil.which(arguments.clang) is None:
        print(f"skipped: no {arguments.clang} here; tools/setup installs it")
        return 77
    declared = Declarations(arguments.clang, arguments.headers)
    symbols = [line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", arguments.core).splitlines()]
    symbols = [name for name in symbols if name.startswith("_Z")]  # those of the C API are compared by tests/c_api
    exported = set(demangled(symbols))

    def is_declared(name):
        if name in declared.functions:
            return True
        if of_class := OF_CLASS.fullmatch(name):
            return of_class.group(1) in declared.classes
        return any(f" {template}<" in name for template in declared.templates)

    extra = sorted(name for name in exported if not is_declared(name))
    missing = sorted(declared.functions - exported)
    missing += sorted(f"{template}<...>" for template in declared.templates if not any(f" {template}<" in name for name in exported))
    print(f"{arguments.core}: {len(symbols)} symbols; the headers leave {len(declared.functions)} functions and "
          f"{len(declared.templates)} templates to it")
    problems = [f"exported, not declared in a public header: {name}" for name in extra]
    problems += [f"declared in a public header, not exported (TENON_API missing, or no definition): {name}" for name in missing]
    problems += [f"TENON_API on a class of which the library defines nothing: {name}" for name in declared.needless]
    print(*(f"  {problem}\n" for problem in problems), sep="", end="")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
