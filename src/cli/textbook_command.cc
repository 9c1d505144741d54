// `ullage textbook SIZE`, and `ullage SIZE` for short.
#include <fmt/core.h>

#include <charconv>

#include "cli/commands.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "cli/run.h"
#include "hardware/catalogue.h"
#include "report/textbook.h"

namespace ullage::cli {
namespace {

namespace book = model::textbook;
using report::TextbookAnswer;
using report::TextbookQuestion;

constexpr std::int64_t kMostLayers = 100'000;
constexpr std::int64_t kMostWidth = 1 << 24;
constexpr std::int64_t kMostTokens = 1 << 26;
constexpr std::int64_t kMostBatch = 1 << 20;
constexpr std::int64_t kMostBytesPerToken = std::int64_t{1} << 30;
constexpr std::int64_t kMostRank = 1 << 16;

double bits_of(std::string_view type) {
  if (type == "fp32") return 32;
  if (type == "bf16" || type == "fp16") return 16;
  return type == "int4" || type == "nf4" ? 4 : 8;
}

Expected<void> take_count(const Arguments& arguments, std::string_view option, std::int64_t most, std::int64_t& to) {
  if (!arguments.has(option)) return {};
  const auto value = arguments.integer(option, to, 1, most);
  if (!value) return tl::unexpected<Error>(value.error());
  to = *value;
  return {};
}

// "1024x512"
Expected<void> take_matrix(const Arguments& arguments, TextbookQuestion& q) {
  if (!arguments.has("--matrix")) return {};
  const std::string given = arguments.text("--matrix");
  const char* end = given.data() + given.size();
  const auto first = std::from_chars(given.data(), end, q.matrix_in);
  const auto second = first.ptr != end && *first.ptr == 'x' ? std::from_chars(first.ptr + 1, end, q.matrix_out)
                                                            : std::from_chars_result{end, std::errc::invalid_argument};
  const bool good = first.ec == std::errc{} && second.ec == std::errc{} && second.ptr == end && q.matrix_in > 0 &&
                    q.matrix_out > 0 && q.matrix_in <= kMostWidth && q.matrix_out <= kMostWidth;
  if (!good)
    return fail(ErrorCode::invalid_argument, "--matrix",
                fmt::format("'{}' is no shape; write one such as 1024x512", given.substr(0, 40)));
  if (arguments.has("--lora")) return {};
  return fail(ErrorCode::invalid_argument, "--matrix", "is what an adapter is added to; give its rank with --lora");
}

Expected<void> take_counts(const Arguments& arguments, TextbookQuestion& q) {
  struct Count {
    std::string_view option;
    std::int64_t most;
    std::int64_t* to;
  };
  const Count counts[] = {{"--layers", kMostLayers, &q.shape.layers},
                          {"--hidden", kMostWidth, &q.shape.hidden},
                          {"--heads", kMostWidth, &q.shape.heads},
                          {"--ffn", kMostWidth, &q.shape.ffn},
                          {"--micro-batch", kMostBatch, &q.micro_batch},
                          {"--seq-len", kMostTokens, &q.seq_len},
                          {"--bytes-per-token", kMostBytesPerToken, &q.bytes_per_token},
                          {"--block-size", kMostTokens, &q.block_size},
                          {"--input-len", kMostTokens, &q.input_len},
                          {"--output-len", kMostTokens, &q.output_len},
                          {"--gpus", hardware::kMostDevices, &q.devices},
                          {"--lora", kMostRank, &q.lora_rank}};
  for (const Count& count : counts) {
    if (auto taken = take_count(arguments, count.option, count.most, *count.to); !taken) return taken;
  }
  const auto cache = arguments.bytes("--cache-memory");
  if (!cache) return tl::unexpected<Error>(cache.error());
  q.cache_bytes = cache->value_or(0);
  if (q.cache_bytes > 0 && q.bytes_per_token == 0)
    return fail(ErrorCode::invalid_argument, "--cache-memory",
                "is divided by what a token takes; give --bytes-per-token");
  return take_matrix(arguments, q);
}

Expected<void> take_card(const Arguments& arguments, TextbookAnswer& answer) {
  if (!arguments.has("--gpu")) return {};
  const auto devices = hardware::find_devices(arguments.text("--gpu"), std::nullopt);
  if (!devices) return tl::unexpected<Error>(devices.error());
  const hardware::Gpu& gpu = devices->groups.front().gpu;
  if (devices->groups.size() > 1)
    return fail(ErrorCode::invalid_argument, "--gpu", "the formulas know equal cards only; name one kind");
  answer.question.card = report::TextbookCard{gpu.id, static_cast<double>(gpu.datasheet_bytes) / kGiB};
  if (devices->count() > 1) answer.question.devices = devices->count();
  if (hardware::supports_flash_attention_2(gpu) == hardware::Support::no)
    answer.warnings.push_back({report::Text::warn_textbook_no_flash,
                               {{"gpu", gpu.name}, {"capability", hardware::to_string(*gpu.compute_capability)}}});
  return {};
}

// The catalogue's model that stands for the size: its sizes where none were given, and what it really takes.
Expected<void> take_model(const Invocation& call, TextbookAnswer& answer) {
  TextbookQuestion& q = answer.question;
  if (!book::stand_in(q.parameters.value_or(0))) return {};  // the formulas alone
  const auto loaded = load_model(answer.size, {}, call.files);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  q.shape = report::textbook_shape(loaded->architecture);
  report::TextbookModel& model = answer.model.emplace();
  model.name = loaded->architecture.name;
  model.parameters = model::parameter_count(loaded->architecture);
  if (q.bits >= 16) model.weight_bytes = multiply_saturated(model.parameters, static_cast<std::int64_t>(q.bits / 8));
  Arguments step;
  step.add_positional(model.name);
  model.step = "ullage train " + model.name;
  if (q.bits == 32) {
    step.add("--precision", "fp32");
    model.step += " --precision fp32";
  }
  if (const auto prediction = predict_training(step, call.files, Ranges::none))
    model.step_allocated_bytes = prediction->peak.allocated_bytes;
  return {};
}

// --only: one of the lines, without what stands around them.
Expected<void> keep_only(const Arguments& arguments, TextbookAnswer& answer) {
  if (!arguments.has("--only")) return {};
  const std::string wanted = arguments.text("--only");
  std::string known;
  for (const report::TextbookLine& line : answer.lines)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", line.name);
  std::erase_if(answer.lines, [&](const report::TextbookLine& line) { return line.name != wanted; });
  if (answer.lines.empty())
    return fail(ErrorCode::invalid_argument, "--only",
                fmt::format("'{}' is none of the lines; here they are {}", wanted.substr(0, 40), known));
  answer.only = true;
  return {};
}

Expected<TextbookAnswer> textbook_answer(const Invocation& call) {
  TextbookAnswer out;
  const Arguments& arguments = call.arguments;
  out.question.bits = bits_of(arguments.text("--quantization", arguments.text("--dtype", "bf16")));
  if (!arguments.positionals().empty()) {
    out.size = arguments.positionals().front();
    const auto size = book::checked_size(out.size);
    if (!size) return tl::unexpected<Error>(size.error());
    out.question.parameters = *size;
    if (auto taken = take_model(call, out); !taken) return tl::unexpected<Error>(taken.error());
  }
  if (auto taken = take_counts(arguments, out.question); !taken) return tl::unexpected<Error>(taken.error());
  if (auto taken = take_card(arguments, out); !taken) return tl::unexpected<Error>(taken.error());
  out.lines = report::textbook_lines(out.question);
  if (out.lines.empty())
    return fail(ErrorCode::invalid_argument, "SIZE",
                "missing; write one such as 7B, or --layers and --hidden, or --matrix and --lora");
  if (auto kept = keep_only(arguments, out); !kept) return tl::unexpected<Error>(kept.error());
  return out;
}

}  // namespace

Expected<int> textbook_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const auto answer = textbook_answer(call);
  if (!answer) return tl::unexpected<Error>(answer.error());
  return call.streams
      .out(wants_json(call.arguments) ? report::textbook_json(*answer) : report::textbook_text(*answer, *style))
      .map([] { return int{kAnswered}; });
}

}  // namespace ullage::cli
