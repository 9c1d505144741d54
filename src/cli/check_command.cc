#include <fmt/core.h>

#include <algorithm>

#include "cli/answer.h"
#include "cli/check_corrections.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/serve_versions.h"
#include "launch/launch.h"
#include "model/catalogue.h"
#include "report/check.h"

namespace ullage::cli {
namespace {

constexpr std::int64_t kMostFileBytes = 1 << 20;

// Options of `check` that `serve` has under the same name.
constexpr std::string_view kHandedOn[] = {"--gpu",       "--gpus",       "--interconnect", "--gpu-memory", "--used",
                                          "--input-len", "--output-len", "--concurrency",  "--require-fit"};

struct Read {
  launch::Launch launch;
  std::string taken_model;
  std::vector<std::string> question;
};

std::string last_part(std::string path) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

// "org/name" of a folder in the Hub's cache: "…/models--org--name/snapshots/…".
std::string cached_name(const std::string& path) {
  constexpr std::string_view kFolder = "models--";
  const std::size_t at = path.find(kFolder);
  if (at == std::string::npos) return {};
  std::string name = path.substr(at + kFolder.size());
  name = name.substr(0, name.find('/'));
  const std::size_t dashes = name.find("--");
  if (dashes == std::string::npos) return name;
  return name.substr(0, dashes) + "/" + name.substr(dashes + 2);
}

// What a folder of another machine holds, by its name.
std::string model_behind(const std::string& path, const Files& files) {
  const bool is_path = path.starts_with('/') || path.starts_with('.') || path.starts_with('~') ||
                       path.starts_with('$') || std::count(path.begin(), path.end(), '/') > 1;
  if (!is_path || files.kind(path) != PathKind::none) return {};
  for (const std::string& name : {cached_name(path), last_part(path)}) {
    if (name.empty()) continue;
    if (const auto entry = model::find_model(name)) return entry->name;
  }
  return {};
}

void hand_on(const Arguments& arguments, const launch::Launch& launch, std::vector<std::string>& words) {
  for (const std::string_view option : kHandedOn) {
    if (!arguments.has(option)) continue;
    words.emplace_back(option);
    if (option != "--require-fit") words.push_back(arguments.text(option));
  }
  for (const std::string& field : arguments.all("--set")) {
    words.emplace_back("--set");
    words.push_back(field);
  }
  const std::string version = arguments.text("--engine-version", launch.version);
  if (!version.empty()) {
    words.emplace_back("--engine-version");
    words.push_back(version);
  }
  const std::string gpu = arguments.text("--gpu");
  const auto letter = std::find_if_not(gpu.begin(), gpu.end(), [](char c) { return c >= '0' && c <= '9'; });
  const bool leading = letter != gpu.begin() && letter != gpu.end() && *letter == 'x';  // "8xh100"
  const bool counted = arguments.has("--gpus") || gpu.find(',') != std::string::npos || leading;
  if (launch.visible_gpus && !launch.several_hosts && !gpu.empty() && !counted) {
    words.emplace_back("--gpus");
    words.push_back(std::to_string(*launch.visible_gpus));
  }
}

Expected<Read> read_command(const Invocation& call) {
  const auto file = [&](const std::string& path) { return call.files.read(path, kMostFileBytes); };
  auto launch = launch::read_launch(call.arguments.positionals(), file);
  if (!launch) return tl::unexpected<Error>(launch.error());
  Read out{*std::move(launch), {}, {}};
  if (call.arguments.has("--model")) out.launch.model = call.arguments.text("--model");
  if (out.launch.model.empty())
    return fail(ErrorCode::invalid_argument, "COMMAND", "names no model; add it, or name one with --model");
  out.taken_model = model_behind(out.launch.model, call.files);
  out.question = launch::serve_words(out.launch);
  if (!out.taken_model.empty()) out.question[1] = out.taken_model;
  hand_on(call.arguments, out.launch, out.question);
  return out;
}

std::string answer_of(const Invocation& call, const report::CheckReport& report, const report::TextStyle& style) {
  return wants_json(call.arguments) ? report::check_json(report) : report::check_text(report, style);
}

// What was read is of use even where the rest cannot be answered.
Expected<int> stop(const Invocation& call, const report::CheckReport& report, const report::TextStyle& style,
                   Error error) {
  if (error.code == ErrorCode::unsupported) {
    if (auto written = call.streams.out(answer_of(call, report, style)); !written)
      return tl::unexpected<Error>(written.error());
  }
  return tl::unexpected<Error>(std::move(error));
}

Expected<int> two_versions(const Invocation& call, const Arguments& serve, const report::TextStyle& style) {
  const auto pair = predict_versions(serve, call.files);
  if (!pair) return tl::unexpected<Error>(pair.error());
  return call.streams.out(versions_answer(call.arguments, *pair, style)).map([] { return int{kAnswered}; });
}

}  // namespace

Expected<int> check_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  if (auto checked = check_require_fit(call.arguments); !checked) return tl::unexpected<Error>(checked.error());
  auto read = read_command(call);
  if (!read) return tl::unexpected<Error>(read.error());
  report::CheckReport report;
  report.launch = std::move(read->launch);
  report.taken_model = std::move(read->taken_model);
  report.question = std::move(read->question);
  if (!report.launch.unknown.empty()) report.spelled = launch::changed_command(report.launch, {});
  const auto serve = parse_arguments(*find_command("serve"), std::span(report.question).subspan(1));
  if (!serve) return stop(call, report, *style, serve.error());
  if (asks_two_versions(*serve)) return two_versions(call, *serve, *style);
  auto prediction = predict_serving(*serve, call.files);
  if (!prediction) return stop(call, report, *style, prediction.error());
  report.prediction = *std::move(prediction);
  report.searched = report.prediction->fit.fits == false;
  if (report.searched) report.corrections = find_corrections({report.launch, *serve, *report.prediction, call.files});
  const bool refused = call.arguments.has("--require-fit") && report.searched;
  return call.streams.out(answer_of(call, report, *style)).map([&] { return refused ? kDoesNotFit : kAnswered; });
}

}  // namespace ullage::cli
