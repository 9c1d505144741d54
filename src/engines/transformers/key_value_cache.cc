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
    : context_(context),
      kind_(options.cache),
      fixed_(options.cache == CacheKind::fixed),
      form_(options.quantised_cache),
      prompt_(options.seq_len),
      longest_(options.cached_tokens()) {
  for (std::int64_t i = 0; i < architecture.layer_count(); ++i) {
    Layer& layer = layers_.emplace_back();
    if (kind_ != CacheKind::quantised) layer.window = architecture.kind_of(i).attention.window.value_or(0);
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
  if (kind_ == CacheKind::offloaded) prefetch(layers_[static_cast<std::size_t>(layer_number + 1) % layers_.size()]);
  if (kind_ == CacheKind::quantised) {
    quantise(layer, key, value);
  } else if (!fixed_) {
    if (layer.window > 0) slide(layer, key, value);
    else grow(layer, key, value);
  } else if (layer.window > 0 && layer.seen + tokens > width(layer)) {
    overflow(layer, key, value);
  } else {
    fill(layer, key, value);
  }
  layer.seen += tokens;
  if (layer.keys) {
    context_.set_label(layer.keys.storage(), context_.intern("keys"));
    context_.set_label(layer.values.storage(), context_.intern("values"));
  }
  if (kind_ == CacheKind::offloaded) offload(layer);
}

// QuantizedLayer.update: the first tokens are quantised at once and read as they are; later ones are read behind what
// the others become again, and when enough of them have come all are quantised anew.
void KeyValueCache::quantise(Layer& layer, Tensor& key, Tensor& value) {
  if (layer.seen == 0) {
    layer.quantised_keys.take(t::contiguous(key), form_, form_.axis_key);
    layer.quantised_values.take(t::contiguous(value), form_, form_.axis_value);
    return;
  }
  const t::Restore<memory::Component> component(context_.component, memory::Component::temporaries);
  const Tensor old_keys = layer.quantised_keys.whole();
  const Tensor old_values = layer.quantised_values.whole();
  const auto behind = [](const Tensor& old, const Tensor& recent, const Tensor& last) {
    return recent ? t::cat({old, recent, last}, 2) : t::cat({old, last}, 2);
  };
  Tensor all_keys = behind(old_keys, layer.keys, key);
  Tensor all_values = behind(old_values, layer.values, value);
  context_.component = memory::Component::kv_cache;
  if (layer.keys && layer.keys.size(2) + 1 >= form_.residual_length) {
    layer.quantised_keys.take(t::contiguous(all_keys), form_, form_.axis_key);
    layer.quantised_values.take(t::contiguous(all_values), form_, form_.axis_value);
    layer.keys.reset();
    layer.values.reset();
  } else {
    layer.keys = joined(layer.keys, key);
    layer.values = joined(layer.values, value);
  }
  key = std::move(all_keys);
  value = std::move(all_values);
}

void KeyValueCache::offload(Layer& layer) {
  layer.host_keys = layer.keys.sizes();
  layer.host_values = layer.values.sizes();
  layer.host_dtype = layer.keys.dtype();
  layer.on_host = true;
  layer.keys.reset();
  layer.values.reset();
}

void KeyValueCache::prefetch(Layer& layer) {
  if (!layer.on_host) return;
  layer.keys = t::empty(context_, Op::copy, layer.host_keys, layer.host_dtype);
  layer.values = t::empty(context_, Op::copy, layer.host_values, layer.host_dtype);
  layer.on_host = false;
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
    if (kind_ == CacheKind::quantised) {
      jump_quantised(layer, tokens);
      continue;
    }
    if (layer.on_host) {
      const std::int64_t kept = layer.window > 1 ? std::min(layer.window - 1, tokens) : tokens;
      layer.host_keys[2] = layer.host_values[2] = kept;
      continue;
    }
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

void KeyValueCache::jump_quantised(Layer& layer, std::int64_t tokens) {
  const std::int64_t recent = (tokens - prompt_) % form_.period();
  layer.quantised_keys.jump_to(context_, tokens - recent);
  layer.quantised_values.jump_to(context_, tokens - recent);
  const auto last = [&](const QuantisedTokens& all) {
    t::Dims sizes = all.sizes();
    sizes[2] = recent;
    return recent > 0 ? t::empty(context_, Op::cat, sizes, all.dtype()) : Tensor{};
  };
  layer.keys = last(layer.quantised_keys);
  layer.values = last(layer.quantised_values);
}

}  // namespace ullage::engines::transformers
