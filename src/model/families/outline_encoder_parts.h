// What outlines of encoders share.
#pragma once

#include <string>
#include <string_view>

#include "model/families/outline_parts.h"

namespace ullage::model {

struct EncoderSizes {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t positions = 0;
  std::int64_t types = 0;  // token types; 0: none
};

struct SizeKeys {
  std::string_view hidden = "hidden_size";
  std::string_view ffn = "intermediate_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view positions = "max_position_embeddings";
};

// With a check that heads divide the width.
EncoderSizes read_encoder(Fields& fields, const EncoderSizes& defaults, const SizeKeys& keys = {});

// The class that the file names first; empty: none.
std::string named_class(const JsonObject& config);

bool ends_with(std::string_view text, std::string_view ending);

// An architecture without embeddings and layers yet.
Architecture encoder(const EncoderSizes& sizes, std::string_view family, std::string layers);

LayerKind encoder_layer(const EncoderSizes& sizes);

void repeat_layer(Architecture& arch, LayerKind layer, std::int64_t count);

// word_embeddings, position_embeddings and token_type_embeddings where there are any, LayerNorm.
void add_bert_embeddings(Architecture& arch, ParameterList& p, const std::string& at, const EncoderSizes& sizes,
                         std::int64_t size);

// Names in a block whose norms follow what they norm.
struct PostNormNames {
  std::string q, k, v, o, attention_norm, up, down, norm;
};

PostNormNames bert_names();

void add_post_norm_block(ParameterList& p, Attention& a, const std::string& at, const EncoderSizes& sizes,
                         const PostNormNames& names);

LayerKind post_norm_layer(const EncoderSizes& sizes, const PostNormNames& names);

}  // namespace ullage::model
