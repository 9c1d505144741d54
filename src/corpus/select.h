// Which cases of a corpus are meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "corpus/case.h"

namespace ullage::corpus {

// One `--where KEY=a,b`: any of the values will do.
struct Where {
  std::string key;
  std::vector<std::string> values;
};

// KEY=a,b or an error that says what is wrong with it.
Expected<Where> parse_where(std::string_view text);

struct Selection {
  std::vector<Where> where;             // all must hold
  std::vector<std::string> confidence;  // empty: any
};

// Whether the case is meant. `prediction` is null where none was made. KEY is
// - `engine`: the case's label; `model`: the name as written or its part after the slash; `gpus`; `family`: the
//   model type, of the prediction or of the catalogue;
// - or an option: as resolved in the prediction's `setup`, else as written in `args`, else its neutral value (0, none,
//   off, false; one of a degree of parallelism), so that an option which does not exist yet selects what does without.
bool selected(const Case& entry, const Json* prediction, const Selection& selection);

// What KEY is in the case, as above; `confidence` too. Empty: nothing says.
std::string value_of(const Case& entry, const Json* prediction, std::string_view key);

}  // namespace ullage::corpus
