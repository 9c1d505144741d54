#include <algorithm>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/train_advice.h"
#include "cli/train_answer.h"
#include "cli/train_search.h"
#include "report/page.h"
#include "report/prediction_json.h"
#include "report/prediction_text.h"
#include "report/timeline_file.h"

namespace ullage::cli {
namespace {

// Options of one answer, which a table of many has no place for.
constexpr std::string_view kOfOneAnswer[] = {"--timeline", "--html", "--why", "--advise", "--require-fit"};

// What is written beside the answer: the timeline by its file's suffix, and the page.
Expected<void> write_files(const Invocation& call, const TrainAnswer& answer, const report::Wording& wording) {
  if (call.arguments.has("--timeline")) {
    const std::string path = call.arguments.text("--timeline");
    const engines::pytorch::ReserveQuestion program{
        answer.run, answer.first ? &*answer.first : nullptr, 0, answer.allocator, {}};
    const std::string content =
        path.ends_with(".pickle") ? report::snapshot_pickle(program) : report::trace_json(program);
    if (auto written = call.files.write(path, content); !written) return written;
  }
  if (!call.arguments.has("--html")) return {};
  return call.files.write(call.arguments.text("--html"),
                          report::prediction_page(answer.prediction, answer.run.timeline, wording));
}

Expected<void> check_files(const Arguments& arguments) {
  if (!arguments.has("--timeline")) return {};
  const std::string path = arguments.text("--timeline");
  if (!path.ends_with(".pickle") && !path.ends_with(".json"))
    return fail(ErrorCode::invalid_argument, "--timeline",
                "expected FILE.pickle (a memory snapshot) or FILE.json (a trace)");
  if (arguments.text("--kernels") != "cpu") return {};
  return fail(ErrorCode::invalid_argument, "--timeline", "shows a GPU's memory; leave --kernels cpu out");
}

Expected<void> check_sweep(const Arguments& arguments) {
  for (const std::string_view option : kOfOneAnswer) {
    if (!arguments.has(option)) continue;
    return fail(ErrorCode::invalid_argument, std::string(option), "belongs to one answer; leave --sweep out");
  }
  return {};
}

PredictStep predicting(const Files& files, Ranges ranges) {
  return [&files, ranges](const Arguments& arguments) { return predict_training(arguments, files, ranges); };
}

Expected<int> sweep_command(const Invocation& call, const report::TextStyle& style) {
  if (auto checked = check_sweep(call.arguments); !checked) return tl::unexpected<Error>(checked.error());
  const auto table =
      run_sweep(call.arguments, predicting(call.files, Ranges::nearby), predicting(call.files, Ranges::none));
  if (!table) return tl::unexpected<Error>(table.error());
  return call.streams.out(wants_json(call.arguments) ? report::sweep_json(*table) : report::sweep_text(*table, style))
      .map([] { return int{kAnswered}; });
}

bool wants_advice(const Arguments& arguments, const report::Prediction& prediction) {
  return arguments.has("--advise") || prediction.fit.fits == false;
}

// The answer with what is found in place of `max`, and with advice where it is wanted.
Expected<TrainAnswer> answer_with_all(const Arguments& given, const Files& files) {
  const PredictStep predict = predicting(files, Ranges::none);
  const auto searched = searched_option(given);
  if (!searched) return tl::unexpected<Error>(searched.error());
  Arguments arguments = given;
  std::vector<report::Message> found;
  if (!searched->empty()) {
    auto largest = search_largest(given, *searched, predict);
    if (!largest) return tl::unexpected<Error>(largest.error());
    arguments = std::move(largest->arguments);
    found.push_back(std::move(largest->assumption));
  }
  auto answer = answer_training(arguments, files, Ranges::nearby);
  if (!answer) return answer;
  report::Prediction& prediction = answer->prediction;
  if (wants_advice(arguments, prediction))
    prediction.advice = advise({arguments, prediction, answer->model.architecture, answer->options}, predict);
  prediction.assumptions.insert(prediction.assumptions.begin(), found.begin(), found.end());
  return answer;
}

int exit_status(const Arguments& arguments, const report::Prediction& prediction) {
  return arguments.has("--require-fit") && prediction.fit.fits == false ? kDoesNotFit : kAnswered;
}

std::string answer_text(const Arguments& arguments, const report::Prediction& prediction,
                        const report::TextStyle& style) {
  if (wants_json(arguments)) return report::prediction_json(prediction);
  if (arguments.has("--why")) return report::why_text(prediction, arguments.text("--why"), style);
  return report::prediction_text(prediction, style);
}

}  // namespace

Expected<report::Prediction> predict_training(const Arguments& arguments, const Files& files, Ranges ranges) {
  return answer_training(arguments, files, ranges).map([](TrainAnswer&& answer) {
    return std::move(answer.prediction);
  });
}

Expected<report::Prediction> predict_with_all(const Arguments& arguments, const Files& files) {
  return answer_with_all(arguments, files).map([](TrainAnswer&& answer) { return std::move(answer.prediction); });
}

Expected<int> train_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  if (auto checked = check_files(call.arguments); !checked) return tl::unexpected<Error>(checked.error());
  if (call.arguments.has("--sweep")) return sweep_command(call, *style);
  const auto answer = answer_with_all(call.arguments, call.files);
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (auto written = write_files(call, *answer, style->wording); !written)
    return tl::unexpected<Error>(written.error());
  return call.streams.out(answer_text(call.arguments, answer->prediction, *style)).map([&] {
    return exit_status(call.arguments, answer->prediction);
  });
}

}  // namespace ullage::cli
