#include "engines/transformers/key_value_cache.h"

#include <algorithm>

namespace ullage::engines::transformers {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

namespace {

// The last `count` tokens; all where there are no more.
Tensor last_tokens(const Tensor& x, std::int64_t count) {
  const std::int64_t tokens = x.size(2);
  return t::slice(x, 2, std::max<std::int64_t>(0, tokens - count), tokens);
}

Tensor joined(const Tensor& before, const Tensor& more) {
  return before ? t::cat({before, more}, 2) : t::cat({more}, 2);
}

}  // namespace

KeyValueCache::KeyValueCache(t::Context& context, const model::Architecture& architecture, const ServeOptions& options)
    : context_(context), fixed_(options.cache == CacheKind::fixed), longest_(options.cached_tokens()) {
  for (std::int64_t i = 0; i < architecture.layer_count(); ++i) {
    Layer& layer = layers_.emplace_back();
    layer.window = architecture.kind_of(i).attention.window.value_or(0);
  }
}

std::int64_t KeyValueCache::width(const Layer& layer) const {
  return layer.window > 0 ? std::min(layer.window, longest_) : longest_;
}

void KeyValueCache::make_counter(Layer& layer) {
  if (!layer.counter) layer.counter = t::empty(context_, Op::cast, {1}, DType::i64);
}

void KeyValueCache::update(std::int64_t layer_number, Tensor& key, Tensor& value) {
  const t::Restore<memory::Component> component(context_.component, memory::Component::kv_cache);
  Layer& layer = layers_[static_cast<std::size_t>(layer_number)];
  const std::int64_t tokens = key.size(2);
  if (!fixed_) {
    if (layer.window > 0) slide(layer, key, value);
    else grow(layer, key, value);
  } else if (layer.window > 0 && layer.seen + tokens > width(layer)) {
    overflow(layer, key, value);
  } else {
    fill(layer, key, value);
  }
  layer.seen += tokens;
  context_.set_label(layer.keys.storage(), context_.intern("keys"));
  context_.set_label(layer.values.storage(), context_.intern("values"));
}

// DynamicLayer.update.
void KeyValueCache::grow(Layer& layer, Tensor& key, Tensor& value) {
  layer.keys = joined(layer.keys, key);
  layer.values = joined(layer.values, value);
  key = layer.keys;
  value = layer.values;
}

// DynamicSlidingWindowLayer.update: what is kept is a view, so the whole lives until the next token comes.
void KeyValueCache::slide(Layer& layer, Tensor& key, Tensor& value) {
  make_counter(layer);
  Tensor all_keys = joined(layer.keys, key);
  Tensor all_values = joined(layer.values, value);
  const std::int64_t kept = layer.window == 1 ? all_keys.size(2) : layer.window - 1;
  layer.keys = last_tokens(all_keys, kept);
  layer.values = last_tokens(all_values, kept);
  key = std::move(all_keys);
  value = std::move(all_values);
}

// StaticLayer.update: copies into its place, by an index of positions.
void KeyValueCache::fill(Layer& layer, Tensor& key, Tensor& value) {
  if (!layer.keys) {
    layer.keys = t::empty(context_, Op::zeros, {key.size(0), key.size(1), width(layer), key.size(3)}, key.dtype());
    layer.values =
        t::empty(context_, Op::zeros, {value.size(0), value.size(1), width(layer), value.size(3)}, value.dtype());
    make_counter(layer);
  }
  {
    const t::Restore<memory::Component> component(context_.component, memory::Component::temporaries);
    Tensor positions = t::empty(context_, Op::arange, {key.size(2)}, DType::i64);
    positions = t::add_scalar(std::move(positions));
  }
  key = layer.keys;
  value = layer.values;
}

// StaticSlidingWindowLayer.update where tokens fall out of the window.
void KeyValueCache::overflow(Layer& layer, Tensor& key, Tensor& value) {
  if (!layer.keys) {
    layer.keys = t::empty(context_, Op::zeros, {key.size(0), key.size(1), width(layer), key.size(3)}, key.dtype());
    layer.values =
        t::empty(context_, Op::zeros, {value.size(0), value.size(1), width(layer), value.size(3)}, value.dtype());
    make_counter(layer);
    return;  // attention reads the new ones, which are all
  }
  if (layer.seen >= width(layer) && key.size(2) == 1) return roll(layer, key, value);
  const t::Restore<memory::Component> component(context_.component, memory::Component::temporaries);
  const std::int64_t before = std::min(layer.seen, width(layer) - 1);
  key = t::cat({last_tokens(layer.keys, before), key}, 2);
  value = t::cat({last_tokens(layer.values, before), value}, 2);
}

// Everything moves by one place, in a copy that is copied back.
void KeyValueCache::roll(Layer& layer, Tensor& key, Tensor& value) {
  {
    const t::Restore<memory::Component> component(context_.component, memory::Component::temporaries);
    const Tensor keys = t::empty(context_, Op::copy, layer.keys.sizes(), layer.keys.dtype());
    const Tensor values = t::empty(context_, Op::copy, layer.values.sizes(), layer.values.dtype());
    t::empty(context_, Op::cast, {1}, DType::i64);
  }
  key = layer.keys;
  value = layer.values;
}

KeyValueCache::MaskSizes KeyValueCache::mask_sizes(bool slides, std::int64_t queries) const {
  const auto at =
      std::find_if(layers_.begin(), layers_.end(), [&](const Layer& l) { return (l.window > 0) == slides; });
  const Layer& layer = at == layers_.end() ? layers_.front() : *at;
  if (layer.window == 0) return {fixed_ ? longest_ : layer.seen + queries, 0};
  const std::int64_t window = fixed_ ? width(layer) : layer.window;
  const std::int64_t offset = std::max<std::int64_t>(layer.seen - window + 1, 0);
  if (layer.seen >= window) return {window - 1 + queries, offset};
  if (fixed_ && layer.seen + queries <= window) return {window, offset};
  return {layer.seen + queries, offset};
}

void KeyValueCache::jump_to(std::int64_t tokens) {
  const t::Restore<memory::Component> component(context_.component, memory::Component::kv_cache);
  const auto extended = [&](const Tensor& x, std::int64_t length) {
    return t::empty(context_, Op::cat, {x.size(0), x.size(1), length, x.size(3)}, x.dtype());
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const t::Restore<std::int16_t> number(context_.layer, static_cast<std::int16_t>(i));
    layer.seen = tokens;
    if (fixed_ || !layer.keys) continue;
    // A window's view begins one token behind what it is a view of.
    const std::int64_t kept = layer.window > 1 ? std::min(layer.window, tokens) : tokens;
    layer.keys = extended(layer.keys, kept);
    layer.values = extended(layer.values, kept);
    if (layer.window > 1) {
      layer.keys = last_tokens(layer.keys, layer.window - 1);
      layer.values = last_tokens(layer.values, layer.window - 1);
    }
  }
}

}  // namespace ullage::engines::transformers
