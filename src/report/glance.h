// What a prediction says at a glance, as messages that text and page share.
#pragma once

#include <string>

#include "report/part_names.h"
#include "report/prediction.h"
#include "report/text_style.h"

namespace ullage::report {

Message title_of(const Prediction& prediction);
Message verdict_of(const Prediction& prediction);
TextPage::Tone verdict_tone(const Prediction& prediction);

// What the shares of components are of, and what alternatives are compared by: the process, or where there is none the
// allocated bytes.
std::int64_t whole_of(const Prediction& prediction);

// Where memory runs out; PyTorch's own words follow it.
Message full_of(const FullCardLine& full, const Wording& wording);

// "mlp.down_proj mm, 32 layers".
std::string group_name(const Group& group, const Wording& wording);

// The value of one option as resolved: "8192", "bf16".
std::string shown(const Setting& setting);
// "micro_batch=1 seq_len=2048 …".
std::string setup_text(const Prediction& prediction);

// "--lora 16 --quantize-base nf4".
std::string args_text(const AdviceLine& line);
// What an alternative saves, needs and costs.
Message advice_effect(const AdviceLine& line);

// "elements = 8,030,261,248, …": what was put into a component's rule.
std::string values_text(const Why& why);

}  // namespace ullage::report
