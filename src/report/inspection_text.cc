#include <fmt/core.h>

#include <algorithm>

#include "report/inspection.h"
#include "report/layout.h"

namespace ullage::report {
namespace {

constexpr std::size_t kModuleName = 34;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t size : shape) out += fmt::format("{}{}", out.empty() ? "" : "x", size);
  return out;
}

std::string giga(std::int64_t flops) { return fmt::format("{:.3f}", static_cast<double>(flops) * 1e-9); }

std::string times(const std::string& name, std::int64_t copies, bool unicode) {
  return copies > 1 ? fmt::format("{} {}{}", name, unicode ? "×" : "x", copies) : name;
}

void write_header(TextPage& page, const Inspection& i) {
  page.line(page.toned(i.model.name, TextPage::Tone::strong));
  page.paragraph(page.say(Message{Text::model_line,
                                  {{"family", i.model.family},
                                   {"parameters", Count{i.model.parameters}},
                                   {"bytes", Bytes{i.model.parameter_bytes}}}}) +
                     fmt::format(" ({})", name_of(i.dtype)),
                 0);
  if (!i.flops) return page.paragraph(page.say(Message{Text::inspect_outline, {}}), 0);
  const Value sample = i.seq_len ? *i.seq_len : i.image_size.value_or(0);
  page.paragraph(page.say(Message{i.seq_len ? Text::inspect_work_text : Text::inspect_work_image,
                                  {{"flops", giga(*i.flops)}, {"macs", Count{*i.macs}}, {"size", sample}}}),
                 0);
}

void write_layers(TextPage& page, const Inspection& i) {
  if (i.layer_count == 0) return;
  page.heading(Text::inspect_layers);
  for (const LayerGroup& group : i.layers) {
    if (group.heads == 0) {
      page.line("  " + page.say(Message{
                           Text::inspect_layer_plain,
                           {{"count", group.count}, {"name", group.name}, {"parameters", Count{group.parameters}}}}));
      continue;
    }
    page.line("  " + page.say(Message{Text::inspect_layer_group,
                                      {{"count", group.count},
                                       {"name", group.name},
                                       {"parameters", Count{group.parameters}},
                                       {"heads", group.heads},
                                       {"kv_heads", group.kv_heads},
                                       {"head_dim", group.head_dim}}}));
  }
}

void write_modules(TextPage& page, const Inspection& i) {
  page.heading(Text::inspect_modules);
  page.line("  " + pad_right(page.say(Text::column_module), kModuleName) +
            pad_left(page.say(Text::column_parameters), 16) +
            (i.flops ? pad_left("GFLOP", 12) + pad_left("GMAC", 12) : ""));
  for (const ModuleLine& line : i.modules) {
    const std::string name = line.name.empty() ? page.say(Text::inspect_no_module) : line.name;
    page.line("  " +
              pad_right(shorten(times(name, line.copies, page.style().unicode), kModuleName - 1, page.style().unicode),
                        kModuleName) +
              pad_left(with_separators(line.parameters), 16) +
              (i.flops ? pad_left(giga(line.flops), 12) + pad_left(giga(line.macs), 12) : ""));
  }
}

void write_parameters(TextPage& page, const Inspection& i) {
  page.heading(Text::inspect_parameters);
  for (const ParameterLine& line : i.parameters) {
    const std::string name = times(line.name, line.copies, page.style().unicode);
    const std::string note = line.tied_to.empty() ? page.bytes(line.elements * line.copies * size_of(i.dtype))
                                                  : page.say(Message{Text::inspect_tied, {{"name", line.tied_to}}});
    page.line("  " + pad_right(shorten(name, 45, page.style().unicode), 46) + pad_right(shape_text(line.shape), 16) +
              note);
  }
}

}  // namespace

std::string inspection_text(const Inspection& i, const TextStyle& style) {
  TextPage page(style);
  write_header(page, i);
  if (style.detail == Detail::quiet) return page.take();
  write_layers(page, i);
  write_cache(page, i.cache);
  if (i.weights) write_weights(page, *i.weights);
  write_modules(page, i);
  write_parameters(page, i);
  page.list(Text::heading_warnings, i.warnings);
  page.list(Text::heading_assumptions, i.assumptions);
  return page.take();
}

std::string tensor_text(const TensorFacts& tensor, const TextStyle& style) {
  TextPage page(style);
  page.paragraph(page.say(Message{Text::inspect_tensor,
                                  {{"shape", shape_text(tensor.shape)},
                                   {"dtype", std::string(name_of(tensor.dtype))},
                                   {"elements", Count{tensor.elements}},
                                   {"bytes", Bytes{tensor.bytes}},
                                   {"exact", Count{tensor.bytes}}}}),
                 0);
  return page.take();
}

}  // namespace ullage::report
