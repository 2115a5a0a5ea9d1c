// SPDX-License-Identifier: Apache-2.0
// cli/verbs.h - the verbs of `tenon`, one file each; those of its other programs are in cli/program.h.
#pragma once

namespace CLI {
class App;
}

namespace tenon::cli {

void add_train_verbs(CLI::App& app);  ///< train, eval, summary
void add_predict_verb(CLI::App& app);
void add_generate_verb(CLI::App& app);
void add_weights_verb(CLI::App& app);
void add_export_verb(CLI::App& app);
void add_quantize_verb(CLI::App& app);
void add_onnx_verbs(CLI::App& app);  ///< run, onnx
void add_explain_verb(CLI::App& app);
void add_gradcheck_verb(CLI::App& app);
void add_backends_verb(CLI::App& app);
void add_devices_verb(CLI::App& app);
void add_doctor_verb(CLI::App& app);
void add_caps_verb(CLI::App& app);
void add_config_verb(CLI::App& app);
void add_demo_verb(CLI::App& app);
void add_new_backend_verb(CLI::App& app);

}  // namespace tenon::cli
