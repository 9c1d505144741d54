#include "cli/help.h"

#include <fmt/core.h>

#include "report/layout.h"

namespace ullage::cli {
namespace {

using report::Language;
using report::Text;

constexpr std::size_t kNames = 26;
constexpr std::size_t kColumns = 80;

// "  name   what it is" in two columns; a long name takes a line of its own.
std::string row(const std::string& name, std::string_view help) {
  const std::size_t column = kNames + 4;
  const bool is_long = report::display_width(name) > kNames;
  const std::string first =
      is_long ? fmt::format("  {}\n{:{}}", name, "", column) : fmt::format("  {}  ", report::pad_right(name, kNames));
  std::string wrapped = report::wrap(help, kColumns - column, 0);
  for (std::size_t at = wrapped.find('\n'); at != std::string::npos; at = wrapped.find('\n', at + 1)) {
    wrapped.insert(at + 1, std::string(column, ' '));
  }
  return first + wrapped + "\n";
}

std::string heading(Text key, Language language) { return fmt::format("\n{}\n", report::text(key, language)); }

std::string options(std::span<const OptionSpec> table, Language language) {
  std::string out;
  for (const OptionSpec& option : table) {
    const std::string name(option.name);
    out += row(option.value.empty() ? name : fmt::format("{} {}", name, option.value),
               report::text(option.help, language));
  }
  return out;
}

std::string usage(std::string command, std::string arguments, Language language) {
  return report::render({Text::help_usage, {{"command", std::move(command)}, {"arguments", std::move(arguments)}}},
                        {language, Unit::gib}) +
         "\n";
}

std::string paragraph(Text key, Language language) {
  return fmt::format("\n{}\n", report::wrap(report::text(key, language), kColumns, 0));
}

}  // namespace

std::string general_help(Language language) {
  std::string out = std::string(report::text(Text::help_intro, language)) + "\n\n" + usage("COMMAND", "…", language);
  out += heading(Text::help_commands, language);
  for (const CommandSpec& command : commands()) {
    out += row(fmt::format("{} {}", command.name, command.positional), report::text(command.help, language));
  }
  out += heading(Text::help_common, language) + options(common_options(), language);
  return out + paragraph(Text::help_model, language) + paragraph(Text::help_more, language);
}

std::string command_help(const CommandSpec& command, Language language) {
  std::string out = fmt::format("ullage {}: {}\n\n", command.name, report::text(command.help, language));
  out += usage(std::string(command.name), std::string(command.positional) + (command.many_positionals ? "…" : ""),
               language);
  out += heading(Text::help_options, language) + options(command.options, language);
  out += heading(Text::help_common, language) + options(common_options(), language);
  return out;
}

}  // namespace ullage::cli
