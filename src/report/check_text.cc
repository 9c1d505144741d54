#include <fmt/core.h>

#include <algorithm>

#include "report/check.h"
#include "report/glance.h"
#include "report/prediction_text.h"

namespace ullage::report {
namespace {

using launch::Launch;
using launch::ReadFlag;
using Tone = TextPage::Tone;

std::string flag_text(const ReadFlag& flag, bool with_value) {
  std::string out = flag.name;
  if (flag.off && out.starts_with("--")) out.insert(2, "no-");
  if (with_value && !flag.value.empty()) out += " " + flag.value;
  return out;
}

std::string joined(const std::vector<ReadFlag>& flags, bool with_values, const std::string& from) {
  std::string out;
  for (const ReadFlag& flag : flags) {
    if (flag.from == from) out += (out.empty() ? "" : ", ") + flag_text(flag, with_values);
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

void write_flags(TextPage& page, Text key, const std::string& flags) {
  if (!flags.empty()) page.paragraph(page.say(Message{key, {{"flags", flags}}}), 2);
}

std::vector<std::string> files_of(const Launch& launch) {
  std::vector<std::string> out;
  for (const std::vector<ReadFlag>* list : {&launch.read, &launch.ignored, &launch.uncounted}) {
    for (const ReadFlag& flag : *list) {
      if (!flag.from.empty() && std::find(out.begin(), out.end(), flag.from) == out.end()) out.push_back(flag.from);
    }
  }
  return out;
}

void write_unknown(TextPage& page, const Launch& launch) {
  for (const launch::UnknownFlag& unknown : launch.unknown) {
    const bool taken = !unknown.taken_for.empty();
    page.paragraph(page.toned(page.say(Message{taken ? Text::check_unknown_taken : Text::check_unknown,
                                               {{"engine", std::string(engine_title(launch.engine))},
                                                {"flag", unknown.written},
                                                {"nearest", unknown.taken_for}}}),
                              Tone::bad),
                   2);
  }
}

void write_launch(TextPage& page, const CheckReport& report) {
  const Launch& launch = report.launch;
  const std::string engine(engine_title(launch.engine));
  page.line(
      page.toned(page.say(Message{Text::check_title, {{"engine", engine}, {"model", launch.model}}}), Tone::strong));
  if (!report.taken_model.empty()) {
    page.paragraph(page.say(Message{Text::check_model_taken, {{"path", launch.model}, {"model", report.taken_model}}}),
                   2);
  }
  if (!launch.around.empty())
    page.paragraph(page.say(Message{Text::check_around, {{"what", joined(launch.around)}}}), 2);
  if (launch.visible_gpus) {
    page.paragraph(
        page.say(Message{Text::check_visible, {{"count", *launch.visible_gpus}, {"where", launch.visible_by}}}), 2);
  }
  write_flags(page, Text::check_read, joined(launch.read, true, {}));
  for (const std::string& file : files_of(launch)) {
    page.paragraph(page.say(Message{Text::check_file, {{"file", file}, {"flags", joined(launch.read, true, file)}}}),
                   2);
  }
  std::vector<ReadFlag> ignored = launch.ignored;
  for (ReadFlag& flag : ignored) flag.from.clear();
  write_flags(page, Text::check_ignored, joined(ignored, false, {}));
  std::vector<ReadFlag> uncounted = launch.uncounted;
  for (ReadFlag& flag : uncounted) flag.from.clear();
  write_flags(page, Text::check_uncounted, joined(uncounted, true, {}));
  write_flags(page, Text::check_environment, joined(launch.ignored_env));
  write_unknown(page, launch);
  page.line("  " + page.say(Message{Text::check_same, {{"command", launch::shell_line(report.question)}}}));
}

std::string tokens_of(const Prediction& p) { return with_separators(p.serve ? p.serve->kv_tokens : 0); }

std::string changes_text(const Correction& correction) {
  std::string out;
  for (const auto& [name, value] : correction.changes)
    out += fmt::format("{}{}{}{}", out.empty() ? "" : " ", name, value.empty() ? "" : " ", value);
  return out;
}

Message result_of(const Correction& correction) {
  const Prediction& p = correction.prediction;
  return {correction.more_gpus ? Text::correction_result_gpus : Text::correction_result,
          {{"process", Bytes{whole_of(p)}},
           {"left", Bytes{p.fit.headroom_bytes.value_or(0)}},
           {"count", correction.gpus},
           {"tokens", tokens_of(p)}}};
}

void write_corrections(TextPage& page, const CheckReport& report) {
  if (!report.searched) {
    if (report.spelled.empty()) return;
    page.heading(Text::heading_spelled);
    return page.line("  " + report.spelled);
  }
  page.heading(Text::heading_correction);
  if (report.corrections.empty()) return page.line("  " + page.say(Text::correction_none));
  page.line("  " + page.toned(report.corrections.front().command, Tone::good));
  page.paragraph(page.say(result_of(report.corrections.front())), 6);
  if (report.corrections.size() == 1) return;
  page.heading(Text::heading_other_changes);
  for (std::size_t i = 1; i < report.corrections.size(); ++i) {
    page.line("  " + page.toned(changes_text(report.corrections[i]), Tone::strong));
    page.paragraph(page.say(result_of(report.corrections[i])), 6);
  }
}

}  // namespace

std::string check_text(const CheckReport& report, const TextStyle& style) {
  if (style.detail == Detail::quiet)
    return report.prediction ? prediction_text(*report.prediction, style) : std::string();
  TextPage page(style);
  write_launch(page, report);
  std::string out = page.take();
  if (!report.prediction) return out;
  out += "\n" + prediction_text(*report.prediction, style);
  TextPage behind(style);
  write_corrections(behind, report);
  return out + behind.take();
}

}  // namespace ullage::report
