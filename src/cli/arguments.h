// The arguments of one command, checked against its table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "cli/option_table.h"

namespace ullage::cli {

class Arguments {
 public:
  bool has(std::string_view option) const;
  // The value given, or the fallback.
  std::string text(std::string_view option, std::string_view fallback = {}) const;
  std::vector<std::string> all(std::string_view option) const;
  // A whole number from `low` to `high`.
  Expected<std::int64_t> integer(std::string_view option, std::int64_t fallback, std::int64_t low,
                                 std::int64_t high) const;
  Expected<double> number(std::string_view option, double fallback) const;  // finite and not negative
  Expected<std::optional<std::int64_t>> bytes(std::string_view option) const;
  const std::vector<std::string>& positionals() const { return positionals_; }

  void add(std::string_view option, std::string value) { given_.emplace_back(option, std::move(value)); }
  // In place of all values that the option has.
  void replace(std::string_view option, std::string value);
  // Everything that `others` gives, in place of what is given here under the same names.
  void replace_with(const Arguments& others);
  void remove(std::string_view option);
  void add_positional(std::string value) { positionals_.push_back(std::move(value)); }

 private:
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> positionals_;
};

// `args` behind the command's name. Fails with ErrorCode::unsupported for what nothing has built yet and with
// invalid_argument for what does not exist, with the nearest names; `where` is the option.
Expected<Arguments> parse_arguments(const CommandSpec& command, std::span<const std::string> args);

// The error for something that the contract names and nothing has built yet.
tl::unexpected<Error> not_in_this_version(std::string where, std::string_view what = {});

}  // namespace ullage::cli
