#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/serve_answer.h"
#include "cli/serve_budget.h"
#include "cli/serve_engines.h"
#include "cli/serve_sglang.h"
#include "cli/serve_versions.h"
#include "cli/serve_vllm.h"
#include "engines/budget/options.h"
#include "report/page.h"
#include "report/prediction_json.h"
#include "report/prediction_text.h"

namespace ullage::cli {
namespace {

std::string answer_text(const Arguments& arguments, const report::Prediction& prediction,
                        const report::TextStyle& style) {
  if (wants_json(arguments)) return report::prediction_json(prediction);
  if (arguments.has("--why")) return report::why_text(prediction, arguments.text("--why"), style);
  return report::prediction_text(prediction, style);
}

Expected<void> write_page(const Invocation& call, const ServeAnswer& answer, const report::Wording& wording) {
  if (!call.arguments.has("--html")) return {};
  return call.files.write(call.arguments.text("--html"),
                          report::prediction_page(answer.prediction, answer.served.run.timeline, wording));
}

Expected<void> check_serving(const Arguments& arguments) {
  return check_engine_options(arguments).and_then([&] { return check_require_fit(arguments); });
}

Expected<int> finish(const Invocation& call, const report::Prediction& prediction, const report::TextStyle& style) {
  const bool refused = call.arguments.has("--require-fit") && prediction.fit.fits == false;
  return call.streams.out(answer_text(call.arguments, prediction, style)).map([&] {
    return refused ? kDoesNotFit : kAnswered;
  });
}

Expected<int> answer_versions(const Invocation& call, const report::TextStyle& style) {
  const auto pair = predict_versions(call.arguments, call.files);
  if (!pair) return tl::unexpected<Error>(pair.error());
  return call.streams.out(versions_answer(call.arguments, *pair, style)).map([] { return int{kAnswered}; });
}

}  // namespace

Expected<report::Prediction> predict_serving(const Arguments& arguments, const Files& files) {
  if (auto checked = check_serving(arguments); !checked) return tl::unexpected<Error>(checked.error());
  if (engine_of(arguments) == "vllm") return answer_vllm(arguments, files);
  if (engine_of(arguments) == "sglang") return answer_sglang(arguments, files);
  if (engines::budget::engine_named(engine_of(arguments))) return answer_budget(arguments, files);
  return answer_serving(arguments, files).map([](ServeAnswer&& answer) { return std::move(answer.prediction); });
}

Expected<int> serve_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  if (engine_of(call.arguments) != "transformers") {
    if (asks_two_versions(call.arguments)) return answer_versions(call, *style);
    const auto prediction = predict_serving(call.arguments, call.files);
    if (!prediction) return tl::unexpected<Error>(prediction.error());
    return finish(call, *prediction, *style);
  }
  if (auto checked = check_serving(call.arguments); !checked) return tl::unexpected<Error>(checked.error());
  const auto answer = answer_serving(call.arguments, call.files);
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (auto written = write_page(call, *answer, style->wording); !written) return tl::unexpected<Error>(written.error());
  return finish(call, answer->prediction, *style);
}

}  // namespace ullage::cli
