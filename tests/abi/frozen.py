#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sources of an ABI version, for tests: 1.0 as they are, 1.1 as a minor release after it would be.

  frozen.py 1.0|1.1 FOLDER    writes FOLDER/include/tenon (the headers) and FOLDER/source (the sources that a minor release edits, and the
                              part of backends/reference that the pairs need); files that are as they should be are left alone

1.1 has one of each that a minor release may bring: a slot at the end of the backend's table, a field at the end of a struct that the core
sends, of one that the backend sends, of an array element in each direction, and a newer version of an op with an attribute more. The edits
below are all that it takes; what stands between them and today's sources is refused by name.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from oplist import HEADERS, SOURCE

VERSIONS = ("1.0", "1.1")
HEADER = "plugins/abi/tenon/backend.h"
OPS = "plugins/abi/tenon/ops.def"
OLDER = "plugins/abi/tenon/older_ops.def"
FIELDS = "plugins/abi/tenon/attributes.def"
SLOTS = "plugins/sdk/boundary.cpp"
PLAN_SLOTS = "plugins/sdk/boundary_plans.cpp"
QUERY = "plugins/sdk/query.cpp"
TEMPLATE = "plugins/template/template.c"
ACTIVATION = "backends/reference/ops/activation.cpp"
RULES = "runtime/ops/activation.cpp"

# The families that the pairs' net needs. The rest of the reference would only take longer to build.
FAMILIES = (
    "activation arithmetic binary cast compare exponential gemm logic matmul optimizer reduce shape softmax softmax_cross_entropy unary where"
).split()

# (file, what stands there, what takes its place)
NEXT = [
    (HEADER, "#define TENON_ABI_MINOR 0u\n", "#define TENON_ABI_MINOR 1u\n"),
    # A slot.
    (
        HEADER,
        "  const tenon_collectives_table* collectives; /* optional */\n} tenon_backend_table;",
        "  const tenon_collectives_table* collectives; /* optional */\n"
        "  /* since 1.1; optional */\n"
        "  tenon_status (*device_echo)(tenon_device*, uint64_t value, uint64_t* out_value, tenon_error*);\n} tenon_backend_table;",
    ),
    # A field of a struct that the core sends, and of one that the backend sends.
    (HEADER, "  const tenon_run* run; /* of plan_create; NULL: the defaults */\n}", "  const tenon_run* run;\n  uint64_t mark;\n}"),
    (
        HEADER,
        "  uint64_t packed_size_bytes; /* memory the plan itself owns: constants and packed operands, without tenon_value.packed */\n}",
        "  uint64_t packed_size_bytes;\n  uint64_t mark; /* tenon_plan_options.mark */\n}",
    ),
    # A field of the elements of an array that the core sends, of one that the backend fills and of one that it sends.
    (HEADER, "} tenon_node;", "  uint64_t weight;\n} tenon_node;"),
    (HEADER, "} tenon_answer;", "  uint64_t cost;\n} tenon_answer;"),
    (
        HEADER,
        "  uint32_t features; /* TENON_FEATURE_* */\n  uint32_t reserved;\n} tenon_capability;",
        "  uint32_t features; /* TENON_FEATURE_* */\n  uint32_t reserved;\n  uint64_t cost;\n} tenon_capability;",
    ),
    # An op version with an attribute more.
    (
        HEADER,
        "typedef struct tenon_attributes_gelu {",
        "typedef struct tenon_attributes_elu {\n  uint32_t struct_size;\n  uint32_t reserved;\n  double alpha;\n"
        "  double gamma; /* y = gamma x where x > 0, else gamma alpha (e^x - 1) */\n} tenon_attributes_elu;\n\n"
        "typedef struct tenon_attributes_gelu {",
    ),
    (
        OPS,
        'TENON_OP(71, Elu, 6, elu, activation, 0, TENON_DTYPES_FLOAT, alpha, pointwise, "x:T -> y:T; alpha")',
        'TENON_OP(71, Elu, 22, elu, activation, 0, TENON_DTYPES_FLOAT, elu, pointwise, "x:T -> y:T; alpha gamma")',
    ),
    (
        OLDER,
        'updates:T -> y:T; axis reduction")\n',
        'updates:T -> y:T; axis reduction")\nTENON_OLDER_OP(Elu, 6, alpha, elu, a.gamma = 1, "x:T -> y:T; alpha")\n',
    ),
    # What the sources do with all that.
    (PLAN_SLOTS, "  std::unique_ptr<tenon::sdk::Plan> plan;\n", "  std::unique_ptr<tenon::sdk::Plan> plan;\n  std::uint64_t mark = 0;\n"),
    (PLAN_SLOTS, "    *out_plan = plan.release();", "    plan->mark = sent(options).mark;\n    *out_plan = plan.release();"),
    (
        PLAN_SLOTS,
        "  return guarded(error, [&] { hand_over(plan->plan->info(), out_info); });",
        "  return guarded(error, [&] {\n    tenon_plan_info info = plan->plan->info();\n    info.mark = plan->mark;\n"
        "    hand_over(info, out_info);\n  });",
    ),
    (
        SLOTS,
        "const void* extension(tenon_backend* self",
        "tenon_status device_echo(tenon_device*, std::uint64_t value, std::uint64_t* out_value, tenon_error*) {\n"
        "  *out_value = value;\n  return TENON_OK;\n}\n\nconst void* extension(tenon_backend* self",
    ),
    (SLOTS, "  table.blas = blas;\n", "  table.blas = blas;\n  table.device_echo = device_echo;\n"),
    (QUERY, "  capability.version = row.version;\n", "  capability.version = row.version;\n  capability.cost = 11;\n"),
    (
        TEMPLATE,
        "static const tenon_backend_table table = {",
        "static tenon_status device_echo(tenon_device* device, uint64_t value, uint64_t* out_value, tenon_error* error) {\n"
        "  *out_value = value;\n  return TENON_OK;\n}\nstatic const tenon_backend_table table = {",
    ),
    (TEMPLATE, "plan_execute, NULL, NULL, NULL, NULL, NULL, NULL\n", "plan_execute, NULL, NULL, NULL, NULL, NULL, NULL, device_echo\n"),
    (
        ACTIVATION,
        "  const double alpha = call.attr<tenon_attributes_alpha>().alpha;\n"
        "  map<T>(call, [alpha](double x) { return x > 0 ? x : alpha * std::expm1(x); });",
        "  const double alpha = call.attr<tenon_attributes_elu>().alpha, gamma = call.attr<tenon_attributes_elu>().gamma;\n"
        "  map<T>(call, [=](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });",
    ),
    (
        RULES,
        "  return graph::apply_op(TENON_OP_Elu, {x}, with_alpha(alpha));",
        "  tenon_attributes_elu attributes{};\n  attributes.alpha = alpha;\n  attributes.gamma = 1;\n"
        "  return graph::apply_op(TENON_OP_Elu, {x}, Attributes::of(attributes));",
    ),
    (
        FIELDS,
        "TENON_ATTRIBUTES(gelu,",
        "TENON_ATTRIBUTES(elu, TENON_VALUE(alpha) TENON_VALUE(gamma))\nTENON_ATTRIBUTES(gelu,",
    ),
]


class Changed(Exception):
    """A line that an edit names is no longer there."""


def edited(version):
    """path -> text of every file that this version edits."""
    texts = {}
    for path, old, new in NEXT if version == "1.1" else []:
        text = texts.get(path) or (SOURCE / path).read_text()
        if text.count(old) != 1:
            raise Changed(f"{path} no longer holds once what tests/abi/frozen.py edits for ABI {version}:\n{old}")
        texts[path] = text.replace(old, new)
    return texts


def write(path, text):
    """Only what differs, so that nothing is built again for nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", choices=VERSIONS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--headers-only", action="store_true")
    arguments = parser.parse_args()
    texts = edited(arguments.version)
    headers = {f"plugins/abi/tenon/{header.name}": header.read_text() for header in sorted((HEADERS / "tenon").iterdir())}
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**headers, **{p: t for p, t in texts.items() if p in headers}}.items():
            write(Path(folder) / "tenon" / Path(path).name, text)
        # What the lists say now is appended, what they said before stays.
        command = [sys.executable, SOURCE / "tests" / "abi" / "digests.py", "--write", "--headers", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for header in (Path(folder) / "tenon").iterdir():
            write(arguments.folder / "include" / "tenon" / header.name, header.read_text())
    if arguments.headers_only:
        return 0
    sources = {path: text for path, text in texts.items() if path not in headers}
    reference = SOURCE / "backends" / "reference"
    families = [reference / "ops" / f"{family}.cpp" for family in FAMILIES]
    for file in [*families, *sorted(reference.glob("blas/*")), *sorted(reference.glob("*.h")), *sorted(reference.glob("*.cpp"))]:
        path = str(file.relative_to(SOURCE))
        sources.setdefault(path, file.read_text())
    sources.setdefault(TEMPLATE, (SOURCE / TEMPLATE).read_text())
    for path, text in sources.items():
        write(arguments.folder / "source" / path, text)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Changed, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
