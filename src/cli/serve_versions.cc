#include "cli/serve_versions.h"

#include <fmt/core.h>

#include "cli/output.h"

namespace ullage::cli {

bool asks_two_versions(const Arguments& arguments) {
  return arguments.text("--engine-version").find(',') != std::string::npos;
}

Expected<report::VersionPair> predict_versions(const Arguments& arguments, const Files& files) {
  const std::string given = arguments.text("--engine-version");
  const std::size_t comma = given.find(',');
  report::VersionPair out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::string version = i == 0 ? given.substr(0, comma) : given.substr(comma + 1);
    if (version.empty() || version.find(',') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "--engine-version",
                  fmt::format("'{}' are not two releases; write A,B", given.substr(0, 40)));
    }
    Arguments one = arguments;
    one.replace("--engine-version", std::move(version));
    auto prediction = predict_serving(one, files);
    if (!prediction) return tl::unexpected<Error>(prediction.error());
    out[i] = *std::move(prediction);
  }
  return out;
}

std::string versions_answer(const Arguments& arguments, const report::VersionPair& pair,
                            const report::TextStyle& style) {
  return wants_json(arguments) ? report::versions_json(pair) : report::versions_text(pair, style);
}

}  // namespace ullage::cli
