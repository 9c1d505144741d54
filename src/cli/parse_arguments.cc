// The one file that knows CLI11; its exceptions end here.
#include <fmt/core.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "base/nearest.h"
#include "cli/arguments.h"

namespace ullage::cli {
namespace {

constexpr std::size_t kShown = 80;  // of a value that is wrong

template <class Visit>
void for_each_option(const CommandSpec& command, Visit visit) {
  for (const OptionSpec& option : command.options) visit(option);
  for (const OptionSpec& option : common_options()) visit(option);
}

// "--seq-len" of "--seq-len=4".
std::string option_name(const std::string& argument) { return argument.substr(0, argument.find('=')); }

tl::unexpected<Error> unknown_option(const CommandSpec& command, const std::string& argument) {
  const std::string name = option_name(argument);
  if (has_word(command.later, ' ', name) || has_word(kLaterCommonOptions, ' ', name)) return not_in_this_version(name);
  std::vector<std::string_view> known;
  for_each_option(command, [&](const OptionSpec& option) { known.push_back(option.name); });
  const std::string hint = did_you_mean(nearest_names(name, known, 1));
  return fail(ErrorCode::invalid_argument, name.substr(0, kShown),
              fmt::format("no such option; {}",
                          hint.empty() ? fmt::format("`ullage {} --help` lists all", command.name) : hint));
}

Expected<void> check_value(const OptionSpec& option, const std::string& value) {
  if (has_word(option.later, '|', value)) return not_in_this_version(std::string(option.name), value);
  if (option.choices.empty() || has_word(option.choices, '|', value)) return {};
  std::vector<std::string_view> known;
  std::string list;
  for_each_word(option.choices, '|', [&](std::string_view one) {
    known.push_back(one);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", one);
  });
  const std::string hint = did_you_mean(nearest_names(value, known, 1));
  return fail(ErrorCode::invalid_argument, std::string(option.name),
              fmt::format("'{}' is not one of {}{}{}", value.substr(0, kShown), list, hint.empty() ? "" : "; ", hint));
}

// What follows an option that needs no value is its value only if it can be; else it stands for itself.
Expected<void> take_optional(const OptionSpec& option, const CLI::Option& parsed, Arguments& out) {
  if (parsed.count() == 0) return {};
  const std::vector<std::string> values = parsed.results();
  const std::string value = values.empty() ? std::string() : values.front();
  const bool fits = has_word(option.choices, '|', value);
  out.add(option.name, fits ? value : std::string());
  if (!fits && !value.empty()) out.add_positional(value);
  return {};
}

Expected<void> take(const OptionSpec& option, const CLI::Option& parsed, Arguments& out) {
  const bool flag = option.value.empty();
  if (parsed.count() > 1 && !option.repeatable && !flag) {
    return fail(ErrorCode::invalid_argument, std::string(option.name), "given more than once; give it once");
  }
  if (flag && parsed.count() > 0) out.add(option.name, "true");
  if (flag) return {};
  if (option.value_may_lack()) return take_optional(option, parsed, out);
  for (const std::string& value : parsed.results()) {
    if (auto checked = check_value(option, value); !checked) return checked;
    out.add(option.name, value);
  }
  return {};
}

// One argument too many. If a word followed an option that may lack its value, so that it is not of the `rest`, it was
// meant as one.
tl::unexpected<Error> surplus(const CommandSpec& command, const Arguments& out, const std::vector<std::string>& rest,
                              const std::string& argument) {
  std::optional<Error> meant;
  for_each_option(command, [&](const OptionSpec& option) {
    if (!option.value_may_lack() || !out.has(option.name) || !out.text(option.name).empty()) return;
    for (const std::string& word : out.positionals()) {
      if (std::find(rest.begin(), rest.end(), word) != rest.end()) continue;
      const auto checked = check_value(option, word);
      if (!meant && !checked) meant = checked.error();
    }
  });
  if (meant) return tl::unexpected<Error>(*std::move(meant));
  return fail(ErrorCode::invalid_argument, argument.substr(0, kShown),
              "one argument too many; `ullage --help` shows what goes where");
}

Expected<void> take_positionals(const CommandSpec& command, const std::vector<std::string>& rest, Arguments& out) {
  for (const std::string& argument : rest) {
    if (argument.size() > 1 && argument.front() == '-') return unknown_option(command, argument);
  }
  const std::size_t most = command.positional.empty() || command.takes_command ? 0
                           : command.many_positionals                          ? rest.size()
                                                                               : 1;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (out.positionals().size() >= most) return surplus(command, out, rest, rest[i]);
    out.add_positional(rest[i]);
  }
  const bool needed = most > 0 && command.positional.front() != '[';
  if (needed && out.positionals().empty() && !out.has("--help")) {
    return fail(ErrorCode::invalid_argument, std::string(command.positional),
                fmt::format("missing; write `ullage {} {}`", command.name, command.positional));
  }
  return {};
}

struct Added {
  const OptionSpec* spec;
  CLI::Option* option;
};

std::vector<Added> add_options(CLI::App& app, const CommandSpec& command) {
  std::vector<Added> added;
  for_each_option(command, [&](const OptionSpec& option) {
    CLI::Option* made =
        option.value.empty() ? app.add_flag(std::string(option.name)) : app.add_option(std::string(option.name));
    if (!option.value.empty())
      made->expected(option.value_may_lack() ? 0 : 1, 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    added.push_back({&option, made});
  });
  return added;
}

// The option whose value is missing, if that is what is wrong.
std::string without_value(const std::vector<Added>& added, std::span<const std::string> args) {
  if (args.empty()) return {};
  for (const Added& one : added) {
    if (one.spec->name == args.back()) return std::string(one.spec->name);
  }
  return {};
}

// Where the words of another program's command begin.
Expected<std::size_t> command_begins(const CommandSpec& command, std::span<const std::string> args) {
  const auto dashes = std::find(args.begin(), args.end(), "--");
  const auto begins = static_cast<std::size_t>(dashes - args.begin());
  const bool help = std::find(args.begin(), dashes, "--help") != dashes;
  if (help || begins + 1 < args.size()) return begins;
  return fail(ErrorCode::invalid_argument, "COMMAND",
              fmt::format("missing; write `ullage {} -- vllm serve MODEL`, two dashes in front of it", command.name));
}

Expected<Arguments> parse_own(const CommandSpec& command, std::span<const std::string> args) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const std::vector<Added> added = add_options(app, command);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError&) {
    const std::string option = without_value(added, args);
    if (!option.empty()) return fail(ErrorCode::invalid_argument, option, "needs a value");
    return fail(
        ErrorCode::invalid_argument, {},
        fmt::format("the arguments cannot be read; `ullage {} --help` shows how they are written", command.name));
  }
  Arguments out;
  for (const Added& one : added) {
    if (auto taken = take(*one.spec, *one.option, out); !taken) return tl::unexpected<Error>(taken.error());
  }
  if (auto taken = take_positionals(command, app.remaining(), out); !taken) return tl::unexpected<Error>(taken.error());
  return out;
}

}  // namespace

Expected<Arguments> parse_arguments(const CommandSpec& command, std::span<const std::string> args) {
  if (!command.takes_command) return parse_own(command, args);
  const auto begins = command_begins(command, args);
  if (!begins) return tl::unexpected<Error>(begins.error());
  auto out = parse_own(command, args.first(*begins));
  if (!out) return out;
  for (const std::string& word : args.subspan(std::min(*begins + 1, args.size()))) out->add_positional(word);
  return out;
}

}  // namespace ullage::cli
