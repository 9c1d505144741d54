#include "report/checkpoint_report.h"

#include <algorithm>

#include "base/bytes.h"

namespace ullage::report {
namespace {

void add(std::vector<StoredLine>& lines, std::string_view name, const model::StoredTensor& tensor) {
  auto line = std::find_if(lines.begin(), lines.end(), [&](const StoredLine& known) { return known.name == name; });
  if (line == lines.end()) line = lines.insert(lines.end(), StoredLine{std::string(name)});
  ++line->tensors;
  line->elements = add_saturated(line->elements, tensor.elements);
  line->bytes = add_saturated(line->bytes, tensor.bytes);
}

void sort_by_bytes(std::vector<StoredLine>& lines) {
  std::stable_sort(lines.begin(), lines.end(),
                   [](const StoredLine& a, const StoredLine& b) { return a.bytes > b.bytes; });
}

void describe(CheckpointReport& out, const model::Architecture& architecture) {
  out.name = architecture.name;
  out.family = architecture.family;
  out.parameters = model::parameter_count(architecture);
}

}  // namespace

std::string_view name_of(model::Extra what) {
  switch (what) {
    case model::Extra::buffers: return "buffers";
    case model::Extra::predictors: return "prediction_layers";
    case model::Extra::scales: return "scales";
    case model::Extra::tied_head: return "tied_head";
    case model::Extra::frequencies: return "rotary_frequencies";
    case model::Extra::masks: return "masks";
    case model::Extra::other: return "other";
  }
  return "other";
}

std::string_view name_of(model::StoredPart part) {
  switch (part) {
    case model::StoredPart::embeddings: return "embeddings";
    case model::StoredPart::attention: return "attention";
    case model::StoredPart::experts: return "experts";
    case model::StoredPart::feed_forward: return "feed_forward";
    case model::StoredPart::norms: return "norms";
    case model::StoredPart::head: return "head";
    case model::StoredPart::scales: return "scales";
    case model::StoredPart::other: return "other";
  }
  return "other";
}

std::int64_t CheckpointReport::elements() const {
  if (files) return files->elements();
  std::int64_t out = parameters.value_or(0);
  for (const ExtraLine& extra : extras) {
    if (extra.certain) out = add_saturated(out, extra.elements);
  }
  return out;
}

CheckpointReport report_files(model::Checkpoint files, const model::Architecture* architecture) {
  CheckpointReport out;
  for (const model::StoredTensor& tensor : files.tensors) {
    add(out.types, tensor.type.name, tensor);
    add(out.parts, name_of(model::part_of(tensor.name)), tensor);
  }
  sort_by_bytes(out.types);
  sort_by_bytes(out.parts);
  if (architecture != nullptr) {
    describe(out, *architecture);
    model::Difference difference = model::compare(*architecture, files);
    for (model::TensorGroup& group : difference.only_stored)
      out.extras.push_back({group.what, true, group.tensors, group.elements, group.bytes, std::move(group.example)});
    out.only_in_model = std::move(difference.only_in_model);
    out.other_shape = std::move(difference.other_shape);
  }
  out.files = std::move(files);
  return out;
}

CheckpointReport report_rule(const model::Architecture& architecture, const JsonObject& config) {
  CheckpointReport out;
  describe(out, architecture);
  for (const model::StoredExtra& extra : model::stored_extras(architecture, config))
    out.extras.push_back(
        {extra.what, extra.certain, std::nullopt, extra.elements, std::nullopt, std::string(extra.source)});
  return out;
}

}  // namespace ullage::report
