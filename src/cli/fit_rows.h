// The rows of `ullage fit`: set-ups that an estimate finds and a real run of `ullage serve` confirms.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/model_source.h"
#include "cli/streams.h"
#include "hardware/gpu.h"
#include "plan/fit_estimate.h"
#include "report/fit.h"

namespace ullage::cli {

// A model with what is known of it for any card.
struct FitModel {
  std::string word;  // as it was asked for
  LoadedModel loaded;
  std::string own_quantization;  // of a checkpoint that is quantised already, which stays so
  std::unique_ptr<plan::FitEstimate> estimate;
};

// One kind of card, of which up to `most` may be taken.
struct FitGpu {
  std::string word;
  hardware::Gpu gpu;
  std::int64_t most = plan::kMostCards;
  plan::FitCard card;
};

FitGpu fit_gpu(std::string word, hardware::Gpu gpu, std::int64_t most);

struct FitWanted {
  std::int64_t least_tokens = 2048;
  std::string dtype;  // empty: bf16, or fp16 where the card has no bf16

  // Of what is kept, generated; the rest is the prompt.
  std::int64_t new_tokens() const;
};

// Fails with ErrorCode::unsupported where the model's generation is not in this version.
Expected<std::unique_ptr<FitModel>> load_fit_model(const std::string& word, const FitWanted& wanted,
                                                   const Files& files);

// As plan::choose_fits has it, by the estimate alone.
Expected<std::vector<plan::FitChoice>> estimated_fits(FitModel& model, const FitGpu& gpu, const FitWanted& wanted);

// The same, confirmed. One row that says so where nothing fits.
Expected<std::vector<report::FitRow>> fit_rows(FitModel& model, const FitGpu& gpu, const FitWanted& wanted,
                                               const Files& files);

}  // namespace ullage::cli
