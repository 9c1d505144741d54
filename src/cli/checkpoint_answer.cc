#include "cli/checkpoint_answer.h"

#include "cli/hub_weights.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "cli/weight_files.h"
#include "model/outline.h"
#include "report/checkpoint_report.h"

namespace ullage::cli {
namespace {

using report::CheckpointReport;
using report::Text;

// A file answers even where nothing is known of the model that it is for.
Expected<CheckpointReport> of_file(const std::string& path, const Files& files) {
  auto read = read_weights(path, files);
  if (!read) return tl::unexpected<Error>(read.error());
  auto architecture =
      read->config.and_then([&](const Json& config) { return model::build_outline(config, read->where); });
  CheckpointReport out = report::report_files(std::move(read->checkpoint), architecture ? &*architecture : nullptr);
  out.name = read->name;
  if (out.files->header_only) out.warnings.push_back({Text::warn_header_only, {}});
  if (!architecture) out.warnings.push_back({Text::warn_model_unknown, {{"problem", to_string(architecture.error())}}});
  return out;
}

// Headers of files on the Hub are fetched only where they are asked for, here.
Expected<std::optional<model::Checkpoint>> stored_on_hub(const std::string& name, const Files& files) {
  if (!is_of_hub(name, files)) return std::optional<model::Checkpoint>();
  const auto repository = files.repository(name);
  if (!repository) return tl::unexpected<Error>(repository.error());
  return weights_on_hub(**repository);
}

Expected<CheckpointReport> of_model(const Invocation& call, const std::string& name) {
  auto loaded = load_model(name, call.arguments.all("--set"), call.files, Extent::outline);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  if (loaded->weights_problem) return tl::unexpected<Error>(*loaded->weights_problem);
  auto remote = stored_on_hub(name, call.files);
  if (!remote) return tl::unexpected<Error>(remote.error());
  if (*remote) loaded->stored = std::move(*remote);
  CheckpointReport out = loaded->stored ? report::report_files(*std::move(loaded->stored), &loaded->architecture)
                                        : report::report_rule(loaded->architecture, JsonObject(loaded->config, name));
  out.assumptions = loaded->assumptions;
  for (const report::Message& warning : loaded->warnings) {
    if (warning.key != Text::warn_quantised) out.warnings.push_back(warning);  // that one is about training
  }
  return out;
}

}  // namespace

Expected<std::string> checkpoint_answer(const Invocation& call, const report::TextStyle& style) {
  const std::string& name = call.arguments.positionals().front();
  for (const char* option : {"--dtype", "--seq-len", "--image-size"}) {
    if (call.arguments.has(option))
      return fail(ErrorCode::invalid_argument, option, "has no effect on what is stored; leave it or --checkpoint out");
  }
  auto answer = names_weights(name) ? of_file(name, call.files) : of_model(call, name);
  if (!answer) return tl::unexpected<Error>(answer.error());
  return wants_json(call.arguments) ? report::checkpoint_json(*answer) : report::checkpoint_text(*answer, style);
}

}  // namespace ullage::cli
