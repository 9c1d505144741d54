// Models by name: the configurations of data/models.jsonl.
//
// A name is found by binary search over the beginnings of lines; only the wanted line is parsed. The one slower way is
// a name without its organisation, which looks at the beginning of every line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/json.h"

namespace ullage::model {

// Lines sorted by name, ignoring case.
struct ModelCatalogue {
  std::string_view models;
};

// What was compiled in.
ModelCatalogue built_in_models();

struct CatalogueEntry {
  std::string name;        // "org/name" as the Hub writes it
  std::string model_type;  // empty where the configuration has none
  std::string provenance;  // whose copy of the configuration this is
  std::string note;        // what in it was mapped, recalled or inferred
  bool partial = false;    // lacks what a count of its parameters needs
  Json config;             // the configuration, with sorted keys
};

// `name` ignores case; the part after the first slash is enough when only one model has it. Several have it:
// invalid_argument that lists them. None: not_found with the nearest names. `where` stands in front of the error.
Expected<CatalogueEntry> find_model(std::string_view name, std::string_view where = "MODEL",
                                    const ModelCatalogue& catalogue = built_in_models());

// One line of `ullage models`; views into the catalogue.
struct ModelRow {
  std::string_view name;
  std::string_view model_type;
  bool partial = false;
};

// All that are set must hold, ignoring case.
struct ModelFilter {
  std::string text;        // part of the name
  std::string model_type;  // the whole model type
};

// In the order of names; parses nothing.
std::vector<ModelRow> list_models(const ModelFilter& filter = {}, const ModelCatalogue& catalogue = built_in_models());

}  // namespace ullage::model
