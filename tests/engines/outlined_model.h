// A model of the catalogue as engines that serve it see it: its configuration, and the outline that follows from it.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "base/json.h"
#include "model/catalogue.h"
#include "model/outline.h"

namespace ullage::testing {

struct OutlinedModel {
  Json config;
  model::Architecture architecture;
};

// With the fields of `more` in place of its own; empty, and a failure, where the catalogue has no such model.
inline OutlinedModel outlined(std::string_view name, const Json& more = Json::object()) {
  const auto entry = model::find_model(name);
  EXPECT_TRUE(entry) << name;
  if (!entry) return {};
  Json config = entry->config;
  config.update(more);
  auto architecture = model::build_outline(config, entry->name);
  EXPECT_TRUE(architecture) << name;
  return {std::move(config), architecture.value_or(model::Architecture{})};
}

}  // namespace ullage::testing
