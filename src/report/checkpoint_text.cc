#include <algorithm>

#include "base/printable.h"
#include "report/checkpoint_report.h"
#include "report/layout.h"

namespace ullage::report {
namespace {

constexpr std::size_t kName = 26;
constexpr std::size_t kTensors = 10;
constexpr std::size_t kValues = 20;
constexpr std::size_t kListed = 10;  // names of a list that are shown

Text text_of(model::Extra what) {
  switch (what) {
    case model::Extra::buffers: return Text::extra_buffers;
    case model::Extra::predictors: return Text::extra_predictors;
    case model::Extra::scales: return Text::extra_scales;
    case model::Extra::tied_head: return Text::extra_tied_head;
    case model::Extra::frequencies: return Text::extra_frequencies;
    case model::Extra::masks: return Text::extra_masks;
    case model::Extra::other: return Text::extra_other;
  }
  return Text::extra_other;
}

Text text_of_part(std::string_view part) {
  if (part == "embeddings") return Text::stored_embeddings;
  if (part == "attention") return Text::stored_attention;
  if (part == "experts") return Text::stored_experts;
  if (part == "feed_forward") return Text::stored_feed_forward;
  if (part == "norms") return Text::stored_norms;
  if (part == "head") return Text::stored_head;
  return part == "scales" ? Text::extra_scales : Text::extra_other;
}

void write_header(TextPage& page, const CheckpointReport& report) {
  page.line(page.toned(printable(report.name), TextPage::Tone::strong));
  if (!report.files) {
    page.paragraph(page.say(Text::checkpoint_by_rule), 0);
  } else {
    const model::Checkpoint& files = *report.files;
    const bool gguf = files.format == model::CheckpointFormat::gguf;
    page.paragraph(page.say(Message{Text::checkpoint_files,
                                    {{"format", std::string(gguf ? "GGUF" : "safetensors")},
                                     {"files", files.files},
                                     {"tensors", Count{static_cast<std::int64_t>(files.tensors.size())}},
                                     {"bytes", Bytes{files.tensor_bytes()}},
                                     {"exact", Count{files.tensor_bytes()}},
                                     {"header", Bytes{files.header_bytes}}}}),
                   0);
  }
  page.paragraph(page.say(Message{Text::checkpoint_values, {{"values", Count{report.elements()}}}}), 0);
  if (report.parameters)
    page.paragraph(page.say(Message{Text::checkpoint_parameters,
                                    {{"family", report.family}, {"parameters", Count{*report.parameters}}}}),
                   0);
}

std::string row(const TextPage& page, std::string_view name, std::int64_t tensors, std::int64_t elements,
                std::int64_t bytes) {
  return "  " + pad_right(shorten(name, kName - 1, page.style().unicode), kName) +
         pad_left(with_separators(tensors), kTensors) + pad_left(with_separators(elements), kValues) +
         pad_left(page.bytes(bytes), page.bytes_width());
}

void write_columns(TextPage& page) {
  page.line("  " + pad_right("", kName) + pad_left(page.say(Text::column_tensors), kTensors) +
            pad_left(page.say(Text::column_values), kValues) +
            pad_left(page.say(Text::column_stored), page.bytes_width()));
}

void write_types(TextPage& page, const CheckpointReport& report) {
  if (report.types.empty()) return;
  page.heading(Text::checkpoint_types);
  write_columns(page);
  for (const StoredLine& line : report.types) page.line(row(page, line.name, line.tensors, line.elements, line.bytes));
  page.heading(Text::checkpoint_parts);
  write_columns(page);
  for (const StoredLine& line : report.parts)
    page.line(row(page, page.say(text_of_part(line.name)), line.tensors, line.elements, line.bytes));
}

void write_extra(TextPage& page, const ExtraLine& extra) {
  if (extra.tensors && extra.bytes) {
    page.line(row(page, page.say(text_of(extra.what)), *extra.tensors, extra.elements, *extra.bytes));
    page.line("    " + shorten(printable(extra.origin), page.style().columns - 5, page.style().unicode));
    return;
  }
  page.line("  " + pad_right(page.say(text_of(extra.what)), kName) +
            pad_left(with_separators(extra.elements), kTensors + kValues));
  page.paragraph(page.say(Message{extra.certain ? Text::checkpoint_certain : Text::checkpoint_perhaps,
                                  {{"source", extra.origin}}}),
                 4);
}

void write_extras(TextPage& page, const CheckpointReport& report) {
  if (report.extras.empty()) return;
  page.heading(Text::checkpoint_extras);
  for (const ExtraLine& extra : report.extras) write_extra(page, extra);
}

void write_names(TextPage& page, Text heading, const std::vector<std::string>& names) {
  if (names.empty()) return;
  page.heading(heading);
  for (std::size_t i = 0; i < std::min(names.size(), kListed); ++i)
    page.line("  " + shorten(printable(names[i]), page.style().columns - 3, page.style().unicode));
  if (names.size() > kListed)
    page.line("  " +
              page.say(Message{Text::checkpoint_more, {{"count", static_cast<std::int64_t>(names.size() - kListed)}}}));
}

}  // namespace

std::string checkpoint_text(const CheckpointReport& report, const TextStyle& style) {
  TextPage page(style);
  write_header(page, report);
  if (style.detail == Detail::quiet) return page.take();
  write_types(page, report);
  write_extras(page, report);
  write_names(page, Text::checkpoint_only_in_model, report.only_in_model);
  write_names(page, Text::checkpoint_other_shape, report.other_shape);
  page.list(Text::heading_warnings, report.warnings);
  page.list(Text::heading_assumptions, report.assumptions);
  return page.take();
}

}  // namespace ullage::report
