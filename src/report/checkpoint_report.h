// What the files of a checkpoint store, or what a checkpoint of a configuration would store, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/architecture.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/compare.h"
#include "report/messages.h"
#include "report/text_style.h"

namespace ullage::report {

// Stored tensors that have something in common.
struct StoredLine {
  std::string name;  // of the type or of the part, as JSON calls it
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

// What is stored besides the model's parameters. From a file all is certain and bytes are known; by rule neither is.
struct ExtraLine {
  model::Extra what = model::Extra::other;
  bool certain = true;
  std::optional<std::int64_t> tensors;
  std::int64_t elements = 0;
  std::optional<std::int64_t> bytes;
  std::string origin;  // the first tensor's name, or the source of the rule
};

struct CheckpointReport {
  std::string name;
  std::string family;                      // empty: the model could not be told
  std::optional<std::int64_t> parameters;  // of the model; tied ones once
  std::optional<model::Checkpoint> files;  // none: by rule
  std::vector<StoredLine> types;           // largest first
  std::vector<StoredLine> parts;
  std::vector<ExtraLine> extras;
  std::vector<std::string> only_in_model;
  std::vector<std::string> other_shape;
  std::vector<Message> assumptions;
  std::vector<Message> warnings;

  // Of all stored tensors; by rule of the parameters and of what is certain.
  std::int64_t elements() const;
};

// `architecture` may be nullptr, where it could not be built.
CheckpointReport report_files(model::Checkpoint files, const model::Architecture* architecture);
CheckpointReport report_rule(const model::Architecture& architecture, const JsonObject& config);

std::string checkpoint_json(const CheckpointReport& report);
std::string checkpoint_text(const CheckpointReport& report, const TextStyle& style);

// As JSON calls them: "prediction_layers", "feed_forward".
std::string_view name_of(model::Extra what);
std::string_view name_of(model::StoredPart part);

}  // namespace ullage::report
