#include "engines/transformers/split.h"

#include <algorithm>
#include <string_view>

namespace ullage::engines::transformers {
namespace {

using memory::Block;
using memory::BlockId;
using memory::Component;
using memory::Event;
using memory::EventKind;
using memory::OpId;
using memory::OpRecord;
using memory::Timeline;

// Where in a forward pass of the model the timeline is.
enum class Stage : std::uint8_t { outside, in_front, in_layers, behind };

struct Place {
  std::uint32_t card = 0;
  BlockId block = 0;
};

// A tensor that a module was sent, for as long as it runs.
struct Sent {
  std::uint32_t card = 0;
  BlockId block = 0;
  Component component = Component::temporaries;
};

class Splitter {
 public:
  Splitter(const ServeRun& served, const model::Architecture& architecture, const ServeOptions& options,
           const Placement& placement, std::size_t cards)
      : served_(served),
        whole_(served.run.timeline),
        architecture_(architecture),
        options_(options),
        last_card_(static_cast<std::uint32_t>(cards - 1)),
        main_(card_of(placement.main())),
        rotary_(card_of(placement.of_rotary(architecture))),
        hidden_(architecture.hidden),
        placement_(placement),
        places_(whole_.blocks.size()),
        ops_(whole_.ops.size()),
        op_cards_(whole_.ops.size()),
        out_(cards) {
    find_names(architecture);
    for (ServeRun& run : out_) {
      run.run.timeline.names = whole_.names;
      run.run.timeline.granularity_bytes = whole_.granularity_bytes;
      run.jumped = served.jumped;
    }
    copy_name_ = out_.front().run.timeline.names.intern("to");
    for (ServeRun& run : out_) run.run.timeline.names.intern("to");
  }

  std::vector<ServeRun> run() {
    std::size_t mark = 0;
    for (std::uint32_t at = 0; at <= whole_.events.size(); ++at) {
      // Operators come before the events that they cause, and moments before both.
      for (; mark < whole_.marks.size() && whole_.marks[mark].event == at; ++mark) {
        take_ops_before(whole_.marks[mark].event);
        pass(whole_.marks[mark]);
      }
      take_moments(at);
      take_ops_before(at + 1);
      if (at < whole_.events.size()) take(whole_.events[at]);
    }
    return std::move(out_);
  }

 private:
  std::uint32_t card_of(std::int32_t device) const {
    return device == kProcessor ? last_card_ : std::min(static_cast<std::uint32_t>(device), last_card_);
  }
  std::uint32_t card_of_layer(std::int16_t layer) const {
    return card_of(placement_.layers[static_cast<std::size_t>(layer)]);
  }
  Timeline& timeline(std::uint32_t card) { return out_[card].run.timeline; }

  // Modules outside of layers and the cards of their tensors.
  void find_names(const model::Architecture& architecture) {
    by_name_.assign(whole_.names.size(), kNoCard);
    const auto name = [&](std::string_view text, std::int32_t device) {
      for (NameId id = 0; id < whole_.names.size(); ++id) {
        if (whole_.names[id] == text) by_name_[id] = card_of(device);
      }
    };
    for (std::size_t i = 0; i < architecture.parameters.size(); ++i) {
      const std::string& parameter = architecture.parameters[i].name;
      name(parameter, placement_.parameters[i]);
      name(std::string_view(parameter).substr(0, parameter.rfind('.')), placement_.parameters[i]);
    }
    for (std::size_t i = 0; i < architecture.buffers.size(); ++i)
      name(architecture.buffers[i].name, placement_.buffers[i]);
    for (NameId id = 0; id < whole_.names.size(); ++id) {
      if (whole_.names[id] == "rotary_emb") rotary_module_ = id;
      if (whole_.names[id] == "causal_mask") mask_module_ = id;
    }
  }

  void take_ops_before(std::uint32_t event) {
    while (next_op_ < whole_.ops.size() && whole_.ops[next_op_].first_event < event) {
      take_op(next_op_);
      ++next_op_;
    }
  }

  void take_op(OpId i) {
    const OpRecord& op = whole_.ops[i];
    follow(op);
    const std::uint32_t card = card_of_op(op);
    Timeline& to = timeline(card);
    op_cards_[i] = card;
    ops_[i] = static_cast<OpId>(to.ops.size());
    OpRecord& added = to.ops.emplace_back(op);
    added.first_event = static_cast<std::uint32_t>(to.events.size());
  }

  std::uint32_t card_of_op(const OpRecord& op) const {
    if (op.layer != memory::kNoLayer) return card_of_layer(op.layer);
    if (stage_ == Stage::outside) return main_;
    if (op.module == rotary_module_) return rotary_;
    if (op.module < by_name_.size() && by_name_[op.module] != kNoCard) return by_name_[op.module];
    return stage_ == Stage::behind ? hidden_card_ : main_;
  }

  // What changes as the pass comes to this operator's layer.
  void follow(const OpRecord& op) {
    if (op.phase == memory::Phase::setup) return;
    if (op.layer != memory::kNoLayer) {
      if (stage_ != Stage::in_layers || op.layer != layer_) enter(op.layer);
      return;
    }
    if (stage_ == Stage::in_layers) {
      leave();
      stage_ = Stage::behind;
    }
    if (stage_ == Stage::behind) send_behind(op);
    if (stage_ == Stage::outside && op.module < by_name_.size() && by_name_[op.module] != kNoCard) {
      stage_ = Stage::in_front;  // the embedding
      hidden_card_ = by_name_[op.module];
    }
  }

  void enter(std::int16_t layer) {
    leave();
    stage_ = Stage::in_layers;
    layer_ = layer;
    const std::uint32_t card = card_of_layer(layer);
    const std::int64_t tokens = decodes_ ? 1 : options_.seq_len;
    const std::int64_t rows = options_.batch * tokens;
    if (card != hidden_card_) send(card, rows * hidden_ * size_of(options_.dtype), Component::activations);
    hidden_card_ = card;
    send_given(card, architecture_.kind_of(layer).attention);
    if (card != main_) send(card, rows * size_of(DType::i64), Component::inputs);  // the positions
  }

  // Of the masks and of the rotary tables those that are the layer's. Where one of two masks was not made, that is the
  // one without a window.
  void send_given(std::uint32_t card, const model::Attention& attention) {
    const auto give = [&](BlockId block) {
      if (places_[block].card != card) send(card, whole_.blocks[block].requested_bytes, Component::activations);
    };
    const bool all_made = masks_.size() == architecture_.mask_windows.size();
    if (all_made) give(masks_[attention.mask]);
    else if (!masks_.empty() && attention.window) give(masks_.back());
    const bool two = architecture_.local_rotary.dim > 0;
    const std::size_t count = two ? tables_.size() / 2 : tables_.size();
    const std::size_t first = two && attention.window ? count : 0;
    for (std::size_t i = first; i < first + count; ++i) give(tables_[i]);
  }

  // A module behind the layers, the norm or the head, that lives on another card than what it is given.
  void send_behind(const OpRecord& op) {
    if (op.module >= by_name_.size() || by_name_[op.module] == kNoCard) return;
    const std::uint32_t card = by_name_[op.module];
    if (card == hidden_card_) return;
    send(card, options_.batch * hidden_ * size_of(options_.dtype), Component::activations);
    hidden_card_ = card;
  }

  void send(std::uint32_t card, std::int64_t bytes, Component component) {
    Timeline& to = timeline(card);
    const auto op = static_cast<OpId>(to.ops.size());
    const auto block = static_cast<BlockId>(to.blocks.size());
    const auto event = static_cast<std::uint32_t>(to.events.size());
    to.ops.push_back({0, 2 * bytes, event, copy_name_, 0, stage_ == Stage::in_layers ? layer_ : memory::kNoLayer,
                      memory::Phase::forward});
    to.blocks.push_back({bytes, op, 0, stage_ == Stage::in_layers ? layer_ : memory::kNoLayer});
    to.events.push_back({block, EventKind::alloc, component, memory::Space::device, 0});
    sent_.push_back({card, block, component});
  }

  void leave() {
    for (const Sent& one : sent_)
      timeline(one.card).events.push_back({one.block, EventKind::free, one.component, memory::Space::device, 0});
    sent_.clear();
  }

  // The model gives back its logits: a copy on the card that asked takes the place of the head's.
  void pass(const memory::Mark& mark) {
    const std::string_view name = whole_.names[mark.name];
    const bool returned = name == "after_prefill" || name == "after_decode";
    if (returned) {
      leave();
      for (const BlockId block : behind_) move_to_main(block);
      behind_.clear();
      masks_.clear();
      tables_.clear();
      stage_ = Stage::outside;
      decodes_ = true;
    }
    for (ServeRun& run : out_) {
      Timeline& to = run.run.timeline;
      to.marks.push_back({mark.name, static_cast<std::uint32_t>(to.events.size())});
    }
  }

  void move_to_main(BlockId block) {
    const Place old = places_[block];
    if (old.card == main_) return;
    send(main_, whole_.blocks[block].requested_bytes, Component::activations);
    places_[block] = {main_, sent_.back().block};
    sent_.pop_back();
    timeline(old.card).events.push_back({old.block, EventKind::free, Component::activations, memory::Space::device, 0});
  }

  void take_moments(std::uint32_t at) {
    for (ServeRun& run : out_) {
      const auto here = static_cast<std::uint32_t>(run.run.timeline.events.size());
      if (at == served_.run.before_step) run.run.before_step = here;
      if (at == served_.run.after_forward) run.run.after_forward = here;
      if (at == served_.after_prefill) run.after_prefill = here;
      if (at == served_.after_decode) run.after_decode = here;
    }
  }

  void take(const Event& event) {
    if (event.kind == EventKind::alloc) add_block(event);
    const Place& place = places_[event.block];
    Event& added = timeline(place.card).events.emplace_back(event);
    added.block = place.block;
    if (event.kind != EventKind::free) return;
    std::erase(masks_, event.block);
    std::erase(tables_, event.block);
    std::erase(behind_, event.block);
  }

  void add_block(const Event& event) {
    const Block& block = whole_.blocks[event.block];
    const std::uint32_t card = card_of_block(block, event.component);
    Timeline& to = timeline(card);
    places_[event.block] = {card, static_cast<BlockId>(to.blocks.size())};
    Block& added = to.blocks.emplace_back(block);
    if (block.op == memory::kNone) return;
    added.op = op_cards_[block.op] == card ? ops_[block.op] : memory::kNone;
    if (block.layer != memory::kNoLayer) return;
    const NameId module = whole_.ops[block.op].module;
    const bool in_front = stage_ == Stage::in_front || stage_ == Stage::outside;  // a fixed cache's masks come before
    if (in_front && module == rotary_module_) tables_.push_back(event.block);
    if (in_front && module == mask_module_) masks_.push_back(event.block);
    if (stage_ == Stage::behind) behind_.push_back(event.block);
  }

  // Tables of quantised weights follow the codes, which have the name.
  std::uint32_t card_of_block(const Block& block, Component component) {
    if (block.op != memory::kNone && whole_.ops[block.op].phase != memory::Phase::setup) return op_cards_[block.op];
    if (block.layer != memory::kNoLayer) return card_of_layer(block.layer);
    if (component != Component::parameters && component != Component::buffers) return main_;
    if (block.label < by_name_.size() && by_name_[block.label] != kNoCard) weight_card_ = by_name_[block.label];
    return weight_card_;
  }

  static constexpr std::uint32_t kNoCard = 0xFFFFFFFF;

  const ServeRun& served_;
  const Timeline& whole_;
  const model::Architecture& architecture_;
  const ServeOptions& options_;
  std::uint32_t last_card_;
  std::uint32_t main_;
  std::uint32_t rotary_;
  std::int64_t hidden_;
  const Placement& placement_;
  std::vector<Place> places_;            // by block of the whole
  std::vector<OpId> ops_;                // by operator of the whole
  std::vector<std::uint32_t> op_cards_;  // by operator of the whole
  std::vector<ServeRun> out_;

  std::vector<std::uint32_t> by_name_;
  std::uint32_t rotary_module_ = memory::kNone;
  std::uint32_t mask_module_ = memory::kNone;
  NameId copy_name_ = 0;
  std::uint32_t weight_card_ = 0;

  OpId next_op_ = 0;
  Stage stage_ = Stage::outside;
  bool decodes_ = false;
  std::int16_t layer_ = memory::kNoLayer;
  std::uint32_t hidden_card_ = 0;
  std::vector<Sent> sent_;       // to the module that runs
  std::vector<BlockId> masks_;   // alive: what layers are called with
  std::vector<BlockId> tables_;  // of the rotary embedding
  std::vector<BlockId> behind_;  // alive: made behind the layers
};

}  // namespace

std::vector<ServeRun> split_over_cards(const ServeRun& served, const model::Architecture& architecture,
                                       const ServeOptions& options, const Placement& placement, std::size_t cards) {
  return Splitter(served, architecture, options, placement, cards).run();
}

}  // namespace ullage::engines::transformers
