#include "support/command_rows.h"

#include <gtest/gtest.h>

#include <fstream>

namespace ullage::testing {

std::vector<CommandRow> command_rows() {
  std::vector<CommandRow> out;
  std::ifstream in(ULLAGE_TEST_DATA "/launch-commands.jsonl");
  for (std::string line; std::getline(in, line);) {
    auto row = parse_json(line, "launch-commands.jsonl");
    EXPECT_TRUE(row);
    if (row) out.push_back({*std::move(row)});
  }
  EXPECT_GE(out.size(), 30U);
  return out;
}

Expected<std::string> file_of(const CommandRow& row, const std::string& path) {
  const auto files = row.row.find("files");
  if (files != row.row.end() && files->contains(path)) return files->at(path).get<std::string>();
  return fail(ErrorCode::not_found, path, "no such file");
}

}  // namespace ullage::testing
