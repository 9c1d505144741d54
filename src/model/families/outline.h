// Outlines: architectures without a forward pass. A family that is one answers for its weights and for what its layers
// keep between tokens; nothing runs it. Builders here take what layers differ in as data.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/decoder.h"

namespace ullage::model {

// What stands in a layer where attention does in most.
enum class Mixer : std::uint8_t {
  attention,
  latent_attention,
  cross_attention,
  linear_attention,  // gated delta nets and their like
  mamba,
  convolution,
  both,  // attention and Mamba side by side
  none,  // a feed-forward alone
};

// What the layers of one outline differ in.
struct OutlineTraits {
  Mixer mixer = Mixer::attention;
  bool slides = false;
  bool sparse = false;       // a mixture of experts
  std::int32_t variant = 0;  // what the family makes of it
  friend bool operator==(const OutlineTraits&, const OutlineTraits&) = default;
};

using OutlineLayer = std::function<LayerKind(const OutlineTraits& traits)>;

// Names of what stands around the layers.
struct OutlineNames {
  std::string prefix = "model.";
  std::string embedding = "embed_tokens";
  std::string layers = "layers.";
  std::string norm = "norm";     // empty: none
  std::string head = "lm_head";  // with its own prefix; empty: none
  NormKind norm_kind = NormKind::rms;
};

// Reads the fields that all decoders have, as read_decoder does, but not the activation.
DecoderConfig read_sizes(Fields& fields, const DecoderDefaults& defaults);

// The texts of a list with an entry for each layer (`layers` 0: of any length); empty where there is none.
std::vector<std::string> read_layer_names(Fields& fields, std::string_view key, std::int64_t layers);

// Which of `layers` a list of numbers names.
std::vector<bool> read_indices(Fields& fields, std::string_view key, std::int64_t layers);

// The names of layers' kinds as mixers; others are refused. Without the list all are `fallback`.
struct NamedMixer {
  std::string_view name;
  Mixer mixer;
};
std::vector<OutlineTraits> read_mixers(Fields& fields, std::string_view key, const DecoderConfig& c, Mixer fallback,
                                       std::initializer_list<NamedMixer> known);

// Layers between embedding and head; one kind for all that have the same traits, one trait for each layer.
Architecture outline(const DecoderConfig& c, std::string_view family, const OutlineNames& names,
                     const std::vector<OutlineTraits>& layers, const OutlineLayer& make);

// All layers alike.
std::vector<OutlineTraits> same_layers(const DecoderConfig& c, OutlineTraits traits = {});

// A layer with its name and attention, without parameters.
LayerKind outline_layer(const DecoderConfig& c, const OutlineTraits& traits);

// Adds to what stands outside of layers, behind them: towers, projectors. Layers of towers are written out.
ParameterList outside(Architecture& architecture);

// For each of `layers` layers calls add(p, "<prefix>.<number>.").
void write_layers(ParameterList& p, const std::string& prefix, std::int64_t layers,
                  const std::function<void(ParameterList& p, const std::string& at)>& add);

// A buffer of all kinds' layers that checkpoints hold.
void add_stored_buffer(LayerKind& layer, std::string name, std::vector<std::int64_t> sizes);

}  // namespace ullage::model
