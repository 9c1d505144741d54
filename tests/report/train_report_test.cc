// The report about a step says what its timeline says, and its lines add up.
#include "report/train_report.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/family.h"
#include "report/describe.h"

namespace ullage::report {
namespace {

namespace pt = engines::pytorch;

constexpr std::string_view kTiny =
    R"({"model_type": "llama", "vocab_size": 320, "hidden_size": 64, "intermediate_size": 176,
  "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128})";

model::Architecture tiny() {
  auto architecture =
      parse_json(kTiny, "tiny").and_then([](const Json& config) { return model::build_architecture(config, "tiny"); });
  EXPECT_TRUE(architecture) << to_string(architecture.error());
  architecture->name = "tiny";
  return *std::move(architecture);
}

pt::TrainOptions small() {
  pt::TrainOptions options;
  options.micro_batch = 2;
  options.seq_len = 24;
  return options;
}

struct Asked {
  model::Architecture architecture = tiny();
  pt::TrainOptions options = small();
  pt::TrainRun run;
  Prediction report;

  Asked(const pt::TrainOptions& asked, const hardware::Gpu* gpu = nullptr, std::int64_t further = 0) : options(asked) {
    run = *pt::run_train_step(architecture, options);
    report = train_report({architecture, options, run, gpu, further});
  }
};

template <class Lines>
std::int64_t sum_of(const Lines& lines) {
  return std::accumulate(lines.begin(), lines.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& line) { return sum + line.bytes; });
}

std::int64_t sum_at(memory::Level level, const std::vector<ComponentLine>& lines) {
  std::int64_t sum = 0;
  for (const ComponentLine& line : lines) sum += line.level == level ? line.bytes : 0;
  return sum;
}

std::int64_t phase_bytes(const Prediction& report, std::string_view name) {
  for (const PhaseLine& phase : report.phases) {
    if (phase.name == name) return phase.allocated_bytes;
  }
  return -1;
}

hardware::Gpu card(std::int64_t usable) {
  hardware::Gpu gpu;
  gpu.id = "card";
  gpu.name = "Card";
  gpu.vendor = "NVIDIA";
  gpu.memory_bytes = usable;
  gpu.usable_bytes = usable;
  gpu.usable_range_bytes = {usable - 100, usable + 100};
  gpu.usable_basis = hardware::UsableBasis::runtime_total;
  gpu.compute_capability = hardware::ComputeCapability{9, 0};
  return gpu;
}

class EveryStep : public ::testing::TestWithParam<std::tuple<pt::Step, pt::Optimizer, pt::Recompute>> {
 protected:
  Asked asked() const {
    pt::TrainOptions options = small();
    options.step = std::get<0>(GetParam());
    options.optimizer = std::get<1>(GetParam());
    options.recompute = std::get<2>(GetParam());
    return Asked(options);
  }
};

TEST_P(EveryStep, LinesAddUpToThePeak) {
  const Prediction report = asked().report;
  EXPECT_TRUE(memory::adds_up(footprint_of(report)));
  EXPECT_EQ(sum_at(memory::Level::allocated, report.components), report.peak.allocated_bytes);
  EXPECT_EQ(sum_of(report.parts), report.peak.allocated_bytes);
  EXPECT_EQ(sum_of(report.layers), report.peak.allocated_bytes);
  for (const PhaseLine& phase : report.phases) {
    EXPECT_EQ(std::accumulate(phase.components.begin(), phase.components.end(), std::int64_t{0}), phase.allocated_bytes)
        << phase.name;
    EXPECT_LE(phase.allocated_bytes, report.peak.allocated_bytes) << phase.name;
  }
}

TEST_P(EveryStep, RulesGiveTheBytesTheyExplain) {
  for (const ComponentLine& line : asked().report.components) {
    if (line.why.values.empty()) {
      EXPECT_EQ(line.bytes, 0);
    } else if (line.why.values.front().first == "copies") {
      const auto& v = line.why.values;
      EXPECT_EQ(v[0].second * v[1].second * v[2].second + v[3].second, line.bytes);
    } else if (line.why.values.front().first == "reserved_bytes") {
      const auto& v = line.why.values;
      EXPECT_EQ(v[0].second - v[1].second - v[2].second, line.bytes);
    } else {
      std::int64_t sum = 0;
      for (const auto& value : line.why.values) sum += value.second;
      EXPECT_EQ(sum, line.bytes) << memory::name_of(line.component);
    }
    for (const auto& [name, value] : line.why.values) EXPECT_GE(value, 0) << name;
    EXPECT_FALSE(line.why.source.empty());
  }
}

TEST_P(EveryStep, NothingIsUnattributed) {
  for (const ComponentLine& line : asked().report.components)
    EXPECT_NE(line.component, memory::Component::unattributed);
}

INSTANTIATE_TEST_SUITE_P(All, EveryStep,
                         ::testing::Combine(::testing::Values(pt::Step::first, pt::Step::steady, pt::Step::forward),
                                            ::testing::Values(pt::Optimizer::adamw, pt::Optimizer::sgd,
                                                              pt::Optimizer::sgd_momentum, pt::Optimizer::none),
                                            ::testing::Values(pt::Recompute::none, pt::Recompute::full)));

TEST(TrainReport, ForwardReachesNoLaterPhase) {
  pt::TrainOptions options = small();
  options.step = pt::Step::forward;
  const Prediction report = Asked(options).report;
  EXPECT_EQ(phase_bytes(report, "after_backward"), -1);
  EXPECT_EQ(phase_bytes(report, "after_step"), -1);
  EXPECT_EQ(phase_bytes(report, "peak"), phase_bytes(report, "forward_peak"));
  EXPECT_EQ(report.work.backward_flops, 0);
}

TEST(TrainReport, TheMomentOfThePeakIsAnOperator) {
  const Prediction report = Asked(small()).report;
  EXPECT_TRUE(report.peak.at.in_operator);
  EXPECT_FALSE(report.peak.at.op.empty());
  EXPECT_NE(machine_name(report.peak.at), "before_step");
}

// One sequence through matrix products alone costs 2 x tokens x weights; attention and the rest come on top.
TEST(TrainReport, ForwardWorkIsAtLeastThatOfTheMatrixProducts) {
  const Asked asked(small());
  const std::int64_t layer = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 176;
  const std::int64_t products = 2 * 48 * (5 * layer + 64 * 320);
  EXPECT_GT(asked.report.work.forward_flops, products);
  EXPECT_LT(asked.report.work.forward_flops, products * 12 / 10);
  EXPECT_GT(asked.report.work.backward_flops, 2 * products);
}

TEST(TrainReport, FurtherMicroBatchesAddWorkAndNoMemory) {
  pt::TrainOptions three = small();
  three.grad_accum = 3;
  pt::TrainOptions five = small();
  five.grad_accum = 5;
  const Asked counted(three, nullptr, 2);
  const Asked simulated(five);
  EXPECT_EQ(counted.report.work.forward_flops, simulated.report.work.forward_flops);
  EXPECT_EQ(counted.report.work.backward_flops, simulated.report.work.backward_flops);
  EXPECT_EQ(counted.report.work.optimizer_flops, simulated.report.work.optimizer_flops);
  EXPECT_EQ(counted.report.peak.allocated_bytes, simulated.report.peak.allocated_bytes);
  EXPECT_EQ(phase_bytes(counted.report, "after_backward"), phase_bytes(simulated.report, "after_backward"));
}

TEST(TrainReport, AProcessBeyondUsableDoesNotFitAndFailsAtAnAllocation) {
  const Peak peak = Asked(small()).report.peak;
  const hardware::Gpu small_card = card(peak.process_range->low_bytes - kGiB / 4);
  const Prediction report = Asked(small(), &small_card).report;
  EXPECT_EQ(report.fit.fits, false);
  EXPECT_EQ(report.fit.certain, true);
  EXPECT_EQ(report.fit.headroom_bytes, small_card.usable_bytes - *report.peak.process_bytes);
  ASSERT_TRUE(report.full);
  EXPECT_TRUE(report.full->message.starts_with("CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total "));
}

TEST(TrainReport, WithinTheRangeOfTheContextNothingIsCertain) {
  const hardware::Gpu large = card(80 * kGiB);
  const hardware::Gpu near_card = card(*Asked(small(), &large).report.peak.process_bytes);
  const Prediction report = Asked(small(), &near_card).report;
  EXPECT_EQ(report.fit.fits, true);
  EXPECT_EQ(report.fit.certain, false);
  EXPECT_EQ(report.fit.headroom_bytes, 0);
  EXPECT_FALSE(report.full);
}

TEST(TrainReport, FarWithinUsableFits) {
  const hardware::Gpu large = card(std::int64_t{80} * kGiB);
  const Fit fit = Asked(small(), &large).report.fit;
  EXPECT_EQ(fit.fits, true);
  EXPECT_EQ(fit.certain, true);
}

TEST(TrainReport, EachLevelAddsUp) {
  const hardware::Gpu large = card(std::int64_t{80} * kGiB);
  const Prediction report = Asked(small(), &large).report;
  EXPECT_TRUE(memory::adds_up(footprint_of(report)));
  EXPECT_LE(report.peak.reserved_range->low_bytes, *report.peak.reserved_bytes);
  EXPECT_GE(report.peak.reserved_range->high_bytes, *report.peak.reserved_bytes);
  EXPECT_LT(report.peak.process_range->low_bytes, *report.peak.process_bytes);
  EXPECT_GT(report.peak.process_range->high_bytes, *report.peak.process_bytes);
  EXPECT_GE(*report.peak.reserved_bytes, report.peak.allocated_bytes);
}

bool warns(const Prediction& report, Text key) {
  return std::any_of(report.warnings.begin(), report.warnings.end(),
                     [&](const Message& message) { return message.key == key; });
}

TEST(TrainReport, ACardBelowCapability8IsWarnedAbout) {
  hardware::Gpu old = card(16 * kGiB);
  old.compute_capability = hardware::ComputeCapability{7, 5};
  EXPECT_TRUE(warns(Asked(small(), &old).report, Text::warn_no_bf16));
  EXPECT_TRUE(warns(Asked(small(), &old).report, Text::warn_no_flash));
  pt::TrainOptions fp16 = small();
  fp16.dtype = DType::f16;
  EXPECT_FALSE(warns(Asked(fp16, &old).report, Text::warn_no_bf16));
  const hardware::Gpu fresh = card(16 * kGiB);
  EXPECT_TRUE(Asked(small(), &fresh).report.warnings.empty());
}

TEST(TrainReport, HostMemoryIsNotComparedWithACard) {
  pt::TrainOptions options = small();
  options.kernels = pt::Kernels::cpu;
  const hardware::Gpu tiny_card = card(1);
  EXPECT_FALSE(Asked(options, &tiny_card).report.fit.fits.has_value());
}

}  // namespace
}  // namespace ullage::report
