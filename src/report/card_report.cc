#include "report/card_report.h"

#include <algorithm>
#include <limits>

#include "engines/pytorch/reserve.h"
#include "hardware/process_memory.h"
#include "memory/out_of_memory_text.h"

namespace ullage::report {
namespace {

using engines::pytorch::Reserved;
using memory::Component;
using memory::Level;

// An end of what is known, or its middle: what the card offers and what the process takes besides tensors.
struct Case {
  std::int64_t usable_bytes = 0;
  std::int64_t besides_bytes = 0;
};

class CardReport {
 public:
  CardReport(Prediction& out, const TrainQuestion& question, const memory::Moment& peak)
      : out_(out), question_(question), peak_(peak), process_(hardware::process_memory(question.gpu)) {
    // PyTorch's usual wheels are for CUDA 12 from 2.1 on; drivers that run older ones may load all kernels at once.
    if (question.options.torch < memory::TorchVersion{2, 1}) process_.libraries.high_bytes += process_.eager_bytes;
  }

  void write() {
    reserved_ = play(memory::kUnlimitedBytes, 0);
    if (question_.gpu != nullptr) judge(*question_.gpu);
    write_peak();
    write_components();
    if (question_.gpu != nullptr) write_headroom(*question_.gpu);
  }

 private:
  Reserved play(std::int64_t usable, std::int64_t besides) const {
    engines::pytorch::ReserveQuestion asked{question_.run, question_.first, peak_.event, question_.allocator, {}};
    asked.card.total_bytes = usable;
    asked.card.taken_bytes = besides;
    if (usable != memory::kUnlimitedBytes) {
      asked.card.total_bytes += question_.used_bytes;
      asked.card.taken_bytes += question_.used_bytes;
    }
    return engines::pytorch::reserve(asked);
  }

  // By sizes near those that were asked for.
  std::int64_t most_reserved() const { return std::max(reserved_.bytes, question_.nearby_reserved_bytes); }

  std::int64_t besides() const { return process_.context.bytes + process_.libraries.bytes; }

  // Certain where all fits into what is left, or not even the blocks that are in use at once do.
  bool fits(const Case& c) const {
    const std::int64_t left = c.usable_bytes - c.besides_bytes;
    if (reserved_.bytes <= left) return true;
    if (peak_.bytes > left) return false;
    return !play(c.usable_bytes, c.besides_bytes).full;
  }

  // The allocator gives cached memory back before it fails, so only a replay on the card tells.
  void judge(const hardware::Gpu& gpu) {
    const std::int64_t spread = most_reserved() - reserved_.bytes;
    const bool worst =
        fits({gpu.usable_range_bytes.low, process_.context.high_bytes + process_.libraries.high_bytes + spread});
    const bool best = fits({gpu.usable_range_bytes.high, process_.context.low_bytes + process_.libraries.low_bytes});
    // What does not fit for its fragments alone may fit with a size nearby.
    const bool in_use_fits =
        std::min(reserved_.block_bytes, reserved_.bytes) + process_.context.low_bytes + process_.libraries.low_bytes <=
        gpu.usable_range_bytes.high;
    out_.fit.certain = worst || (!best && !in_use_fits);
    // The allocator never reserves more than there is.
    if (worst) most_process_bytes_ = gpu.usable_range_bytes.high;
    out_.fit.fits = true;
    if (reserved_.bytes <= gpu.usable_bytes - besides()) return;
    const Reserved on_card = play(gpu.usable_bytes, besides());
    if (on_card.full) {
      out_.fit.fits = false;
      write_full(*on_card.full, gpu);
    } else {
      reserved_ = on_card;
      out_.warnings.push_back({Text::warn_gives_back, {}});
    }
  }

  void write_full(const engines::pytorch::FullCard& full, const hardware::Gpu& gpu) {
    FullCardLine line;
    const engines::pytorch::TrainRun& run = full.in_first_step ? *question_.first : question_.run;
    const memory::CardMemory card{gpu.usable_bytes + question_.used_bytes, besides() + question_.used_bytes, 0};
    line.message = memory::out_of_memory_text(full.why, card, {}, full.why.reserved_bytes + besides());
    line.at = moment_of(run, full.event + 1);
    line.in_first_step = full.in_first_step;
    line.why = full.why;
    out_.full = line;
  }

  void write_peak() {
    Peak& peak = out_.peak;
    peak.reserved_bytes = reserved_.bytes;
    peak.reserved_range = memory::Range{std::min(reserved_.block_bytes, reserved_.bytes), most_reserved()};
    peak.process_bytes = reserved_.bytes + besides();
    peak.process_range =
        memory::Range{peak.reserved_range->low_bytes + process_.context.low_bytes + process_.libraries.low_bytes,
                      std::max(*peak.process_bytes, std::min(most_process_bytes_, peak.reserved_range->high_bytes +
                                                                                      process_.context.high_bytes +
                                                                                      process_.libraries.high_bytes))};
  }

  void add(Component component, Level level, std::int64_t bytes, Why why) {
    out_.components.push_back({component, level, bytes, std::move(why)});
  }

  void write_components() {
    static constexpr const char* kAllocator = "c10/cuda/CUDACachingAllocator.cpp, its requests and frees replayed";
    const std::int64_t idle = reserved_.idle_bytes;
    add(Component::fragmentation, Level::reserved, reserved_.bytes - peak_.bytes - idle,
        {{Text::why_fragmentation, {}},
         {{"reserved_bytes", reserved_.bytes}, {"allocated_bytes", peak_.bytes}, {"cached_bytes", idle}},
         kAllocator});
    add(Component::cached, Level::reserved, idle, {{Text::why_cached, {}}, {{"cached_bytes", idle}}, kAllocator});
    add_measured(Component::context, Text::why_context, process_.context);
    add_measured(Component::libraries, Text::why_libraries, process_.libraries);
  }

  void add_measured(Component component, Text rule, const hardware::MeasuredBytes& measured) {
    add(component, Level::process, measured.bytes,
        {{rule, {{"low", Bytes{measured.low_bytes}}, {"high", Bytes{measured.high_bytes}}}},
         {{"bytes", measured.bytes}},
         measured.source});
  }

  void write_headroom(const hardware::Gpu& gpu) {
    out_.fit.headroom_bytes = gpu.usable_bytes - *out_.peak.process_bytes;
    out_.fit.headroom_at_most_bytes = gpu.usable_bytes - peak_.bytes;
  }

  Prediction& out_;
  const TrainQuestion& question_;
  const memory::Moment& peak_;
  hardware::ProcessMemory process_;
  Reserved reserved_;
  std::int64_t most_process_bytes_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

void add_card(Prediction& out, const TrainQuestion& question, const memory::Moment& peak) {
  if (question.options.kernels == engines::pytorch::Kernels::cpu) return;
  CardReport(out, question, peak).write();
}

}  // namespace ullage::report
