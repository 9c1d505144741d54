// How much a model needs on each card to generate, for many set-ups at once: an estimate that is made of a few short
// runs of one layer of each kind and of sums over weights and caches. What it finds is confirmed by a real run of the
// set-up; here the question is where to look.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/transformers/device_map.h"
#include "hardware/gpu.h"
#include "model/architecture.h"
#include "plan/fit.h"
#include "speed/decode.h"

namespace ullage::plan {

// What a card offers to tensors, and what the library that places modules takes for free on it.
struct FitCard {
  std::int64_t usable_bytes = 0;  // less CUDA's context and the libraries
  std::int64_t free_bytes = 0;    // less the context alone
  tensor::Capability capability;
};

FitCard fit_card(const hardware::Gpu& gpu);

class FitEstimate {
 public:
  // `new_tokens` of what is kept are generated, the others are the prompt. The architecture must outlive this.
  // `as_it_is`: the format of weights that are not quantised any further.
  FitEstimate(const model::Architecture& architecture, DType dtype, std::int64_t new_tokens,
              model::BaseFormat as_it_is = model::BaseFormat::plain);

  // As FitHeadroom has it.
  Expected<std::int64_t> headroom(const FitSetup& setup, std::int64_t tokens, const FitCard& card);

  // What a format is on this card: fp8 is dequantised to "none" where it is not multiplied.
  std::string_view held_as(std::string_view quantization, const FitCard& card) const;

  // Of one decoding step of one sequence that keeps `tokens`: of the weights those that are active for a token.
  speed::DecodeWork decode_work(std::string_view quantization, std::int64_t tokens);

  std::int64_t weight_bytes(std::string_view quantization);

 private:
  // Bytes besides weights and cache, for a prompt of so many tokens, as a parabola through three runs.
  struct Besides {
    std::array<double, 3> tokens{};
    std::array<double, 3> bytes{};
    double at(double prompt) const;
  };
  struct Weights {
    std::vector<std::int64_t> layers;  // bytes of each kind
    std::vector<std::int64_t> outside;
    std::int64_t all = 0;
  };
  // What each card of several holds.
  struct Share {
    std::int64_t weights = 0;
    std::int64_t layers = 0;
    std::int64_t counted = 0;  // by the library that places modules
  };
  struct Shares {
    std::vector<Share> cards;
    std::int64_t largest = 0;  // module, for which the first card keeps room
  };

  using ByKernels = std::pair<std::string_view, int>;

  engines::transformers::ServeOptions options(std::string_view quantization) const;
  Expected<const Weights*> weights(std::string_view quantization);
  Expected<const Besides*> besides(std::string_view quantization, tensor::Capability capability);
  Expected<const Shares*> shares(const FitSetup& setup);

  const model::Architecture& architecture_;
  model::Architecture short_;  // one layer of each kind
  DType dtype_;
  std::int64_t new_tokens_;
  model::BaseFormat as_it_is_;
  std::int64_t per_token_ = 0;  // of the cache
  std::map<std::string_view, Weights> weights_;
  std::map<std::pair<std::string_view, std::int64_t>, Shares> shares_;
  std::map<ByKernels, Besides> besides_;
};

}  // namespace ullage::plan
