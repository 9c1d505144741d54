// `ullage validate FILE…`: every case through the code that answers `ullage train`, and how far off it was.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/option_table.h"
#include "cli/output.h"
#include "engines/pytorch/code_base.h"
#include "engines/pytorch/loss_version.h"
#include "engines/pytorch/torch_version.h"
#include "report/prediction_json.h"
#include "report/validation.h"

namespace ullage::cli {
namespace {

constexpr std::int64_t kDefaultRows = 20;
constexpr std::int64_t kMostRows = 1'000'000;

Expected<corpus::Selection> read_selection(const Arguments& arguments) {
  corpus::Selection selection;
  for (const std::string& text : arguments.all("--where")) {
    auto where = corpus::parse_where(text);
    if (!where) return tl::unexpected<Error>(where.error());
    selection.where.push_back(*std::move(where));
  }
  const std::string confidence = arguments.text("--confidence");
  for_each_word(confidence, ',', [&](std::string_view word) { selection.confidence.emplace_back(word); });
  return selection;
}

Expected<std::vector<corpus::Case>> read_all(const std::vector<std::string>& paths) {
  if (paths.empty()) return fail(ErrorCode::invalid_argument, "CASES.jsonl", "missing; name a file of measured cases");
  std::vector<corpus::Case> cases;
  for (const std::string& path : paths) {
    auto read = corpus::read_cases(path);
    if (!read) return tl::unexpected<Error>(read.error());
    std::move(read->begin(), read->end(), std::back_inserter(cases));
  }
  return cases;
}

// "2023-10", "2023-10-24" or, for its last month, "2023"; 0: none.
std::int32_t month_of(const std::string& date) {
  std::int32_t year = 0;
  std::int32_t month = 12;
  const char* const end = date.data() + date.size();
  const auto read = std::from_chars(date.data(), end, year);
  if (read.ec != std::errc{} || year < 1970 || year > 9999) return 0;
  if (read.ptr != end) std::from_chars(read.ptr + 1, end, month);
  return year * 100 + month;
}

bool names_option(const std::vector<std::string>& args, std::string_view option) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& word) {
    return word == option || (word.starts_with(option) && word[option.size()] == '=');
  });
}

// With the version of the code that people ran at that date, where none is named.
std::vector<std::string> with_version(std::vector<std::string> args, const std::string& date) {
  const std::int32_t month = month_of(date);
  const auto modules = std::find(args.begin(), args.end(), "--modules");
  if (month == 0 || modules == args.end() || modules + 1 == args.end()) return args;
  if (names_option(args, "--modules-version")) return args;
  const engines::pytorch::Choices* choices = engines::pytorch::choices_of_date(*(modules + 1), month);
  if (choices == nullptr) return args;
  args.insert(args.end(), {"--modules-version", std::string(choices->version)});
  return args;
}

// The same for transformers' code; empty where nothing is to be added.
std::vector<std::string> with_transformers(std::vector<std::string> args, const std::string& date) {
  const auto release = engines::pytorch::release_of_month(month_of(date));
  const bool trains = !args.empty() && args.front() == "train";
  if (!release || !trains || names_option(args, "--modules") || names_option(args, "--transformers")) return {};
  args.insert(args.end(), {"--transformers", engines::pytorch::to_string(*release)});
  return args;
}

// And for PyTorch.
std::vector<std::string> with_torch(std::vector<std::string> args, const std::string& date) {
  const auto release = engines::pytorch::torch_of_month(month_of(date));
  const bool trains = !args.empty() && args.front() == "train";
  if (!release || !trains || names_option(args, "--modules") || names_option(args, "--torch")) return args;
  args.insert(args.end(), {"--torch", fmt::format("{}.{}", release->major, release->minor)});
  return args;
}

// `--with KEY=VALUE` for cases that say nothing of it.
Expected<std::vector<std::string>> added_options(const Arguments& arguments) {
  std::vector<std::string> out = arguments.all("--with");
  for (std::string& text : out) {
    if (text.empty() || text.front() == '=' || text.front() == '-')
      return fail(ErrorCode::invalid_argument, "--with",
                  fmt::format("'{}' is no option; write KEY=VALUE, such as trainer=hf", text.substr(0, 60)));
    std::replace(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(text.find('='), text.size())), '_',
                 '-');
    text = "--" + text;
  }
  return out;
}

std::vector<std::string> with_options(std::vector<std::string> args, const std::vector<std::string>& added) {
  for (const std::string& text : added) {
    const std::size_t equals = text.find('=');
    if (names_option(args, text.substr(0, equals))) continue;
    args.push_back(text.substr(0, equals));
    if (equals != std::string::npos) args.push_back(text.substr(equals + 1));
  }
  return args;
}

}  // namespace

Expected<int> validate_command(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const auto selection = read_selection(arguments);
  if (!selection) return tl::unexpected<Error>(selection.error());
  const auto rows = arguments.integer("--rows", kDefaultRows, 0, kMostRows);
  if (!rows) return tl::unexpected<Error>(rows.error());
  const auto style = text_style(arguments, invocation.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const auto cases = read_all(arguments.positionals());
  if (!cases) return tl::unexpected<Error>(cases.error());
  const auto added = added_options(arguments);
  if (!added) return tl::unexpected<Error>(added.error());
  const corpus::Predict predicted = [&](const std::vector<std::string>& args,
                                        const std::string& date) -> Expected<Json> {
    const std::vector<std::string> asked = with_torch(with_options(with_version(args, date), *added), date);
    const std::vector<std::string> dated = with_transformers(asked, date);
    // How the release of that date made the loss is not known of every family.
    auto prediction = predict(dated.empty() ? asked : dated, invocation.files);
    if (!prediction && !dated.empty()) prediction = predict(asked, invocation.files);
    if (!prediction) return tl::unexpected<Error>(prediction.error());
    return parse_json(report::prediction_json(*prediction), "prediction");
  };
  std::vector<std::string> by;
  for_each_word(arguments.text("--by"), ',', [&](std::string_view word) { by.emplace_back(word); });
  const std::vector<corpus::StatedSetup> setups =
      arguments.has("--as-written") ? std::vector<corpus::StatedSetup>{} : corpus::stated_setups();
  const corpus::Validation validation =
      corpus::validate(*cases, *selection, arguments.text("--key"), predicted, by, setups);
  if (validation.selected == 0) {
    return fail(ErrorCode::invalid_argument, "validate",
                fmt::format("none of the {} cases read is meant; check --where and --confidence", validation.read));
  }
  const auto shown = static_cast<std::size_t>(*rows);
  const std::optional<std::size_t> limit = arguments.has("--rows") ? std::optional<std::size_t>(shown) : std::nullopt;
  const std::string text = wants_json(arguments) ? report::validation_json(validation, limit)
                                                 : report::validation_text(validation, shown, *style);
  const auto written = invocation.streams.out(text);
  if (!written) return tl::unexpected<Error>(written.error());
  if (!validation.failed.empty()) {
    const corpus::Unanswered& first = validation.failed.front();
    return fail(ErrorCode::invalid_argument, first.where,
                fmt::format("{} of {} cases could not be asked; the first: {}", validation.failed.size(),
                            validation.selected, first.reason));
  }
  return 0;
}

}  // namespace ullage::cli
