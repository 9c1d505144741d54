// Encoders trained as masked language models: BERT and RoBERTa.
#pragma once

#include "base/json.h"
#include "model/family.h"

namespace ullage::model {

Expected<Architecture> build_bert(const JsonObject& config);
Expected<Architecture> build_roberta(const JsonObject& config);

Output forward_bert(Modules& m, const Architecture& arch, Batch batch);
Output forward_roberta(Modules& m, const Architecture& arch, Batch batch);

}  // namespace ullage::model
