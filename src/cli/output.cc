#include "cli/output.h"

#include <algorithm>

namespace ullage::cli {
namespace {

bool wants_color(const Arguments& arguments, const Surroundings& surroundings) {
  const std::string when = arguments.text("--color", "auto");
  return when == "always" || (when == "auto" && surroundings.terminal && !surroundings.no_color);
}

report::Detail detail_of(const Arguments& arguments) {
  if (arguments.has("--quiet")) return report::Detail::quiet;
  return arguments.has("--verbose") ? report::Detail::verbose : report::Detail::normal;
}

}  // namespace

report::Language language_of(const Arguments& arguments, const Surroundings& surroundings) {
  const std::string name = arguments.text("--lang", surroundings.language);
  return name.starts_with("zh") ? report::Language::zh : report::Language::en;
}

Expected<report::TextStyle> text_style(const Arguments& arguments, const Surroundings& surroundings) {
  if (arguments.has("--quiet") && arguments.has("--verbose")) {
    return fail(ErrorCode::invalid_argument, "--quiet", "contradicts --verbose; give one of them");
  }
  const auto unit = parse_unit(arguments.text("--units", "GiB"), "--units");
  if (!unit) return tl::unexpected<Error>(unit.error());
  report::TextStyle style;
  style.wording = {language_of(arguments, surroundings), *unit};
  style.color = wants_color(arguments, surroundings);
  style.unicode = surroundings.unicode;
  style.columns = std::clamp<std::size_t>(surroundings.columns, 60, 100);
  style.detail = detail_of(arguments);
  return style;
}

}  // namespace ullage::cli
