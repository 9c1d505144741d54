#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/serve_answer.h"
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

}  // namespace

Expected<int> serve_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const auto answer = answer_serving(call.arguments, call.files);
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (auto written = write_page(call, *answer, style->wording); !written) return tl::unexpected<Error>(written.error());
  const bool refused = call.arguments.has("--require-fit") && answer->prediction.fit.fits == false;
  return call.streams.out(answer_text(call.arguments, answer->prediction, *style)).map([&] {
    return refused ? kDoesNotFit : kAnswered;
  });
}

}  // namespace ullage::cli
