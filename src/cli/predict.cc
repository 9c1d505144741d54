#include "cli/commands.h"

namespace ullage::cli {

Expected<report::Prediction> predict(std::span<const std::string> words, const Files& files) {
  const std::string command = words.empty() ? "command" : words.front();
  if (command != "train" && command != "serve") return not_in_this_version(command);
  const auto arguments = parse_arguments(*find_command(command), words.subspan(1));
  if (!arguments) return tl::unexpected<Error>(arguments.error());
  if (arguments->has("--help")) return fail(ErrorCode::invalid_argument, "--help", "asks for no prediction");
  if (command == "train") return predict_with_all(*arguments, files);
  return predict_serving(*arguments, files);
}

}  // namespace ullage::cli
