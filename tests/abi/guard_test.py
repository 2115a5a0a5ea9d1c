#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the ABI guards: each change below is made to a copy of the headers, and the guard must report it."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADERS = HERE.parents[1] / "plugins" / "abi"
COMPILER = os.environ.get("TENON_TEST_CC", "cc")


class Headers(unittest.TestCase):
    """A copy of the headers and of their layout, for changes."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.headers = Path(folder.name) / "abi"
        shutil.copytree(HEADERS, self.headers)
        self.layout = Path(folder.name) / "layout.txt"
        shutil.copy(HERE / "layout.txt", self.layout)

    def change(self, file, old, new):
        path = self.headers / "tenon" / file
        text = path.read_text()
        self.assertIn(old, text, f"{file} no longer holds the line this test changes")
        path.write_text(text.replace(old, new, 1))

    def guard(self, script, *arguments):
        command = [sys.executable, HERE / script, *arguments, "--headers", self.headers]
        if script == "layout.py":
            command += ["--layout", self.layout, "--cc", COMPILER]
        result = subprocess.run(command, capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def refused(self, script, *sentences, command=()):
        code, text = self.guard(script, *command)
        self.assertEqual(code, 1, text)
        for sentence in sentences:
            self.assertIn(sentence, text)

    def layout_refused(self, *sentences):
        self.refused("layout.py", *sentences, command=("check",))


class Guards(Headers):
    def test_the_headers_as_they_are_pass(self):
        self.assertEqual(self.guard("layout.py", "check")[0], 0)
        self.assertEqual(self.guard("digests.py")[0], 0)

    def test_targets_that_are_not_64_bit_and_little_endian_are_refused(self):
        width = ("#include <stdint.h>\n#undef UINTPTR_MAX\n#define UINTPTR_MAX 0xffffffffu\n", "expected a 64-bit target")
        order = ("#undef __BYTE_ORDER__\n#define __BYTE_ORDER__ __ORDER_BIG_ENDIAN__\n", "expected a little-endian target")
        for target, sentence in (width, order):
            command = [COMPILER, "-std=c11", "-fsyntax-only", f"-I{self.headers}", "-x", "c", "-"]
            result = subprocess.run(command, input=target + "#include <tenon/backend.h>\n", capture_output=True, text=True)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(sentence, result.stderr)

    def test_a_field_in_the_middle_is_named_with_its_place(self):
        self.change("backend.h", "  uint32_t node_stride;", "  uint32_t extra_a;\n  uint32_t extra_b;\n  uint32_t node_stride;")
        self.layout_refused(
            "field tenon_graph.node_stride was uint32_t at 32 (4 bytes), is uint32_t at 40 (4 bytes)",
            "field tenon_graph.extra_a was put in at 32; tenon_graph grows at its end only, at 56",
            "Append instead",
        )

    def test_a_field_at_the_end_needs_no_more_than_a_new_layout_file(self):
        self.change(
            "backend.h",
            "  uint64_t execution_id;",
            "  uint64_t execution_id;\n  uint64_t at_the_end;\n  uint64_t since_1_1;",
        )
        code, text = self.guard("layout.py", "check")
        self.assertEqual(code, 1)
        self.assertIn("field tenon_bindings.at_the_end at 48 is new", text)
        self.assertIn("Appending is allowed", text)
        self.assertNotIn("breaks existing", text)
        self.assertEqual(self.guard("layout.py", "write")[0], 0)
        self.assertEqual(self.guard("layout.py", "check")[0], 0)

    def test_a_frozen_struct_does_not_grow(self):
        self.change("backend.h", "  uint32_t output;\n} tenon_donation;", "  uint32_t output;\n  uint32_t more;\n} tenon_donation;")
        self.layout_refused("field tenon_donation.more was added, but tenon_donation is frozen")

    def test_a_changed_slot_signature_is_a_change_even_at_the_same_offset(self):
        self.change("backend.h", "(TENON_CALL* plan_info)(tenon_plan*, ", "(TENON_CALL* plan_info)(tenon_plan*, uint32_t which, ")
        self.layout_refused("field tenon_backend_table.plan_info was")

    def test_a_renamed_parameter_is_no_change(self):
        self.change("backend.h", "(TENON_CALL* begin)(tenon_stream*, tenon_error*)", "(TENON_CALL* begin)(tenon_stream* stream, tenon_error* error)")
        self.assertEqual(self.guard("layout.py", "check")[0], 0)

    def test_a_reused_constant_is_named(self):
        self.change("backend.h", "TENON_REASON_GRAPH = 7", "TENON_REASON_GRAPH = 8")
        self.layout_refused("constant TENON_REASON_GRAPH was 7, is 8")

    def test_a_breaking_change_is_written_with_another_major_version_only(self):
        self.change("backend.h", "TENON_REASON_GRAPH = 7", "TENON_REASON_GRAPH = 8")
        self.refused("layout.py", "ABI 1 is released and only grows", command=("write",))
        self.change("backend.h", "#define TENON_ABI_MAJOR 1u", "#define TENON_ABI_MAJOR 2u")
        self.assertEqual(self.guard("layout.py", "write")[0], 0)
        self.assertEqual(self.guard("layout.py", "check")[0], 0)

    def test_the_abi_of_transports_is_guarded_too(self):
        self.change("transport.h", "  uint32_t timeout_ms;", "  uint32_t before;\n  uint32_t timeout_ms;")
        self.layout_refused("field tenon_transport_request.timeout_ms was uint32_t at 4 (4 bytes), is uint32_t at 8")

    def test_padding_is_refused(self):
        self.change("backend.h", "  uint32_t binding_count; /*", "  uint64_t binding_count; /*")
        self.layout_refused("fill the gap with a 'reserved' field")

    def test_a_type_of_no_fixed_width_is_refused(self):
        self.change("backend.h", "  uint32_t binding_count; /*", "  long binding_count; /*")
        self.layout_refused("type 'long' does not belong into the ABI")

    def test_what_the_reader_does_not_know_is_refused_and_not_skipped(self):
        self.change("backend.h", "  uint32_t binding_count; /*", "  uint32_t binding_count : 16; /*")
        self.layout_refused("field 'uint32_t binding_count : 16' is not understood")

    def test_a_struct_that_may_grow_is_not_held_by_value(self):
        self.change("backend.h", "  const tenon_blas_table* blas;", "  tenon_blas_table blas;")
        self.layout_refused("tenon_backend_table.blas holds a tenon_blas_table by value")

    def test_a_struct_without_growth_says_that_it_is_frozen(self):
        self.change("backend.h", " * output. Frozen. */", " * output. */")
        self.layout_refused("tenon_donation has neither struct_size nor an element stride")

    def test_an_enumerator_without_a_value_is_refused(self):
        self.change("backend.h", "TENON_MEMORY_HOST = 1,", "TENON_MEMORY_HOST,")
        self.layout_refused("enumerator 'TENON_MEMORY_HOST' has no explicit value")

    def test_a_blas_line_put_in_moves_the_slots_behind_it(self):
        self.change("blas.def", "TENON_BLAS(78, trmm,", "TENON_BLAS(78, extra, 3, trmm, sdcz)\nTENON_BLAS(80, trmm,")
        self.refused("layout.py", "trsm (id 79) stands after trmm (id 80)", command=("check",))
        self.change("blas.def", "TENON_BLAS(80, trmm,", "TENON_BLAS(79, trmm,")
        self.refused("layout.py", "id 79 is given to both 'trmm' and 'trsm'", command=("check",))

    def test_a_blas_argument_put_in_moves_those_behind_it(self):
        self.change("blas_args.def", "TENON_BLAS_ARGS(ger, TENON_FLAG(layout) TENON_SIZE(m)", "TENON_BLAS_ARGS(ger, TENON_FLAG(layout) TENON_SIZE(k) TENON_SIZE(m)")
        self.layout_refused("tenon_blas_ger_args grows at its end only")

    def test_an_op_id_is_given_once(self):
        self.change("ops.def", "TENON_OP(2, Sub,", "TENON_OP(1, Sub,")
        self.refused("layout.py", "id 1 is given to both 'Add' and 'Sub'", command=("check",))

    def test_an_op_that_moves_is_named(self):
        self.change("ops.def", "TENON_OP(2, Sub,", "TENON_OP(9, Sub,")
        self.layout_refused("constant TENON_OP_Sub was 2, is 9")

    def test_a_changed_schema_needs_a_new_version(self):
        self.change("ops.def", "relu, unary, 0, TENON_DTYPES_FLOAT, none, pointwise, \"x:T -> y:T\"", "relu, unary, 0, TENON_DTYPES_FLOAT, none, pointwise, \"x:T -> z:T\"")
        self.refused("digests.py", "Relu-14 has the published digest", "a changed schema needs a new version")
        self.refused("digests.py", "Relu-14 has the published digest", command=("--write",))

    def test_a_new_version_is_appended_and_the_old_digest_stays(self):
        self.change("ops.def", "TENON_OP(41, Relu, 14,", "TENON_OP(41, Relu, 15,")
        self.refused("digests.py", "Relu-15 is not in op_digests.h")
        before = (self.headers / "tenon" / "op_digests.h").read_text().splitlines()
        self.assertEqual(self.guard("digests.py", "--write")[0], 0)
        after = (self.headers / "tenon" / "op_digests.h").read_text().splitlines()
        self.assertEqual([line for line in after if line not in before and "Relu, 15" not in line], [])
        self.assertTrue(set(before) <= set(after))

    def test_an_op_that_vanished_is_named(self):
        path = self.headers / "tenon" / "ops.def"
        path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "TENON_OP(40," not in line))
        self.refused("digests.py", "Neg-13 is listed, but missing in ops.def")

    def test_a_line_of_the_list_that_is_not_understood_is_an_error(self):
        self.change("ops.def", "TENON_OP(2, Sub, 14,", "TENON_OPS(2, Sub, 14,")
        self.refused("digests.py", "expected TENON_OP(...)")


class Released(Headers):
    """The same for today's header as a release, and the 1.1 that frozen.py makes of it."""

    def setUp(self):
        super().setUp()
        self.frozen("1.0")
        self.layout.unlink()
        self.assertEqual(self.guard("layout.py", "write")[0], 0)

    def frozen(self, version):
        folder = self.layout.parent / version
        subprocess.run([sys.executable, HERE / "frozen.py", version, folder, "--headers-only"], check=True)
        self.headers = folder / "include"

    def test_a_minor_release_is_an_append(self):
        self.frozen("1.1")
        code, text = self.guard("layout.py", "append")
        self.assertEqual(code, 0, text)
        for sentence in (
            "field tenon_backend_table.device_echo at 272 is new",
            "field tenon_plan_options.mark at 32 is new",
            "field tenon_plan_info.mark at 32 is new",
            "field tenon_node.weight at 64 is new",
            "op 71 was Elu-6 alpha 0, is Elu-22 elu 0",
            "older Elu-6 is new",
            "constant TENON_ABI_MINOR was 0, is 1",
        ):
            self.assertIn(sentence, text)
        self.assertEqual(self.guard("layout.py", "compile", "--released")[0], 0)
        self.assertEqual(self.guard("layout.py", "compile")[0], 1)
        self.assertEqual(self.guard("digests.py")[0], 0)

    def released_refused(self, *sentences):
        self.refused("layout.py", "breaks the promise of layout.txt", *sentences, command=("append",))
        self.refused("layout.py", "ABI 1 is released and only grows", *sentences, command=("write",))

    def test_slots_that_change_places_are_refused(self):
        self.frozen("1.1")
        self.change("backend.h", "  const tenon_pack_table* pack;\n  const tenon_profile_table* profile;\n",
                    "  const tenon_profile_table* profile;\n  const tenon_pack_table* pack;\n")
        self.released_refused("field tenon_backend_table.pack was")

    def test_a_field_that_goes_is_refused(self):
        self.frozen("1.1")
        self.change("backend.h", "  uint32_t fusion;        /* TENON_FUSION_* */\n", "  uint32_t other;\n")
        self.released_refused("field tenon_plan_options.fusion (offset 12) is gone")

    def test_a_field_of_another_type_is_refused(self):
        self.frozen("1.1")
        self.change("backend.h", "  uint64_t parameters_epoch;", "  double parameters_epoch;")
        self.released_refused("field tenon_bindings.parameters_epoch was uint64_t at 16 (8 bytes), is double at 16 (8 bytes)")

    def test_a_newer_op_version_without_the_older_one_is_refused(self):
        self.frozen("1.1")
        path = self.headers / "tenon" / "older_ops.def"
        path.write_text(path.read_text().split("TENON_OLDER_OP(Elu")[0])
        self.released_refused("op 71 was Elu-6 alpha 0, is Elu-22 elu 0")

    def test_attributes_that_do_not_begin_with_the_older_ones_are_refused(self):
        self.frozen("1.1")
        self.change("backend.h", "  double alpha;\n  double gamma;", "  double gamma;\n  double alpha;")
        self.refused("layout.py", "tenon_attributes_elu does not begin with tenon_attributes_alpha.alpha, as Elu-6 has it", command=("append",))

    def test_an_older_version_keeps_its_digest(self):
        self.frozen("1.1")
        self.change("older_ops.def", '"x:T -> y:T; alpha"', '"x:T -> y:T; beta"')
        self.refused("digests.py", "Elu-6 of older_ops.def gives", "which is not its published digest")


if __name__ == "__main__":
    unittest.main(verbosity=2)
