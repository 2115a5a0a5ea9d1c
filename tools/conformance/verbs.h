// SPDX-License-Identifier: Apache-2.0
// verbs.h - the verbs of tenon-conformance, one file each.
#pragma once

namespace CLI {
class App;
}

namespace tenon::cli {

void add_conformance_verb(CLI::App& app);
void add_generate_docs_verb(CLI::App& app);

}  // namespace tenon::cli
