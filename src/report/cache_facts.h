// What a model keeps between tokens, as part of an inspection.
#pragma once

#include "base/json.h"
#include "model/cache.h"
#include "report/messages.h"
#include "report/text_style.h"

namespace ullage::report {

struct CacheFacts {
  model::CacheTypes types;
  std::vector<model::CacheLine> lines;  // empty: the model does not generate
  model::CacheBytes bytes;              // of no tokens
};

CacheFacts cache_facts(const model::Architecture& architecture, const model::CacheTypes& types);

Json cache_json(const CacheFacts& facts);
void write_cache(TextPage& page, const CacheFacts& facts);

}  // namespace ullage::report
