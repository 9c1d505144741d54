// generate() of the transformers library (5.12), greedy, on one GPU, as a timeline: one forward pass over the prompts
// (prefill), whose head is given the last token alone, and one for each further token (decode).
//
// Source: transformers/generation/utils.py (generate, _prefill, _sample).
#pragma once

#include "engines/pytorch/train.h"
#include "engines/transformers/options.h"
#include "model/architecture.h"

namespace ullage::engines::transformers {

struct ServeRun {
  pytorch::TrainRun run;            // before_step: weights and prompts are there; after_forward: all tokens are chosen
  std::uint32_t after_prefill = 0;  // its first forward pass has returned
  std::uint32_t after_decode = 0;   // its last has
  bool jumped = false;              // tokens in the middle were not generated one by one
};

// Where layers times tokens are more than `most_steps`, tokens in the middle are put into the cache at once. Fails when
// the family cannot be served in this version or the tokens are more than the model has positions for.
Expected<ServeRun> run_generation(const model::Architecture& architecture, const ServeOptions& options,
                                  std::int64_t most_steps = 4096);

// cuBLAS's workspace, as pytorch/workspaces.h puts it into a step.
void add_workspace(ServeRun& served, std::int64_t bytes);

// What the cache keeps of one token while no window is full: latent attention's keys and values are kept as its heads
// read them.
std::int64_t kept_bytes_per_token(const model::Architecture& architecture, const ServeOptions& options);

// How each parameter is held: which are quantised. Fails where a weight does not fill the format's groups.
Expected<model::TuningPlan> plan_weights(const model::Architecture& architecture, const ServeOptions& options);

// Whether generation of a family, by its model_type, was recorded.
bool serves(std::string_view family);
Expected<void> check_served(const model::Architecture& architecture);

}  // namespace ullage::engines::transformers
