// What a model or a tensor is made of, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "engines/pytorch/train.h"
#include "model/architecture.h"
#include "report/cache_facts.h"
#include "report/messages.h"
#include "report/prediction.h"
#include "report/text_style.h"
#include "report/weight_facts.h"

namespace ullage::report {

// One parameter; equal ones of all layers share a line.
struct ParameterLine {
  std::string name;                 // with "*" in place of the layer's number
  std::vector<std::int64_t> shape;  // as stored, outermost first
  std::int64_t copies = 1;          // layers that have it
  std::int64_t elements = 0;        // of one copy
  std::string tied_to;              // the parameter whose memory it shares; then it counts nothing
};

// One module, over all layers that have it, in the order of the forward pass.
struct ModuleLine {
  std::string name;  // empty: operators that belong to no module
  std::int64_t copies = 1;
  std::int64_t parameters = 0;  // over all copies
  std::int64_t flops = 0;       // of all its operators in one forward pass, where one is counted
  std::int64_t macs = 0;        // multiply-accumulates of matrix products, convolutions and attention kernels
};

struct LayerGroup {
  std::string name;  // "decoder"
  std::int64_t count = 0;
  std::int64_t parameters = 0;  // of one
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

struct Inspection {
  ModelFacts model;
  DType dtype = DType::bf16;
  std::int64_t layer_count = 0;
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t max_positions = 0;
  std::optional<std::int64_t> seq_len;  // of the sequence whose work is counted
  std::optional<std::int64_t> image_size;
  std::int64_t buffer_bytes = 0;
  std::vector<LayerGroup> layers;
  std::vector<ParameterLine> parameters;
  std::vector<ModuleLine> modules;
  CacheFacts cache;
  std::optional<WeightFacts> weights;  // where they are stored in another way than the type says
  std::optional<std::int64_t> flops;   // none: the outline alone is known
  std::optional<std::int64_t> macs;
  std::vector<Message> assumptions;
  std::vector<Message> warnings;
};

// `forward` is the run of one forward pass with one sample; nullptr where the architecture has none.
Inspection inspect(const model::Architecture& architecture, const engines::pytorch::TrainOptions& options,
                   const engines::pytorch::TrainRun* forward);

struct TensorFacts {
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::int64_t allocated_bytes = 0;  // in PyTorch's CUDA allocator
};

// "32x3x256x256"; fails on anything else and on more than 64 bits can count.
Expected<TensorFacts> inspect_tensor(std::string_view shape, DType dtype, std::string_view where);

std::string inspection_json(const Inspection& inspection);
std::string inspection_text(const Inspection& inspection, const TextStyle& style);
std::string tensor_json(const TensorFacts& tensor);
std::string tensor_text(const TensorFacts& tensor, const TextStyle& style);

}  // namespace ullage::report
