// What the command line answers as JSON, in process.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "cli/captured_run.h"

namespace ullage::testing {

// `line --json`; an empty object, and a failure, where that is no answer.
inline Json answer(const std::string& line) {
  const Captured captured = run(line + " --json");
  const auto json = parse_json(captured.out, "answer");
  EXPECT_TRUE(json) << line << ": " << captured.err;
  return json ? *json : Json::object();
}

}  // namespace ullage::testing
