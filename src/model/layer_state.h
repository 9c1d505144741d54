// What a layer keeps from one token to the next: something of each token, or a state of fixed size.
#pragma once

#include <cstdint>
#include <optional>

namespace ullage::model {

enum class TokenCacheKind : std::uint8_t {
  keys_values,
  latent,   // one vector for each token in place of all heads' keys and values (MLA)
  indexer,  // keys by which sparse attention chooses the tokens it reads
  cross,    // keys and values of the encoder's tokens, or of an image's; of each sequence once
};

// What a layer keeps of each token.
struct TokenCache {
  TokenCacheKind kind = TokenCacheKind::keys_values;
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;    // of a head; latent: rank and turned part together
  std::int64_t value_dim = 0;  // latent, indexer: 0
  std::int64_t rope_dim = 0;   // of a latent vector's key_dim: the part that is turned, kept in the model's type
  std::optional<std::int64_t> window;  // tokens that a query sees, itself included
  bool chunked = false;                // `window` is a chunk, of which a query sees what is before it
  std::int64_t tokens_per_entry = 1;   // a compressed entry stands for so many tokens

  std::int64_t elements() const { return heads * (key_dim + value_dim); }
  friend bool operator==(const TokenCache&, const TokenCache&) = default;
};

// The state of a layer that keeps one of fixed size instead of keys and values of every token.
enum class RecurrentKind : std::uint8_t {
  linear_attention,   // lightning attention and its like: a decayed sum of outer products
  gated_delta_net,    // also Kimi's delta attention
  mamba,              // a state for each channel
  mamba2,             // a state for each head
  rwkv,               // a matrix for each head, and the token before
  short_convolution,  // nothing but a convolution's window
};

// Sizes are of one sequence. The kind that has no convolution, no matrix or no shift leaves its numbers 0.
struct Recurrent {
  RecurrentKind kind = RecurrentKind::mamba2;
  // A matrix for each head: key by value dimension (linear attention, delta net, RWKV), head by state dimension
  // (Mamba 2); of Mamba each channel is a head with one row.
  std::int64_t heads = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  // Groups of heads that share what turns inputs into the state (Mamba 2), or heads of keys (delta net); 0: as heads.
  std::int64_t groups = 0;
  // A causal convolution in front: its next output needs conv_kernel - 1 inputs of every channel. Some engines keep
  // conv_kernel of them.
  std::int64_t conv_channels = 0;
  std::int64_t conv_kernel = 0;
  // Elements of the token before that are mixed into the next (RWKV: the hidden width for each part that does so).
  std::int64_t shifted = 0;
  bool matrix_in_fp32 = false;  // the published code keeps the matrices so, whatever the weights' type

  std::int64_t matrix_elements() const { return heads * rows * columns; }
  std::int64_t conv_elements() const { return conv_channels * (conv_kernel > 0 ? conv_kernel - 1 : 0); }
  friend bool operator==(const Recurrent&, const Recurrent&) = default;
};

}  // namespace ullage::model
