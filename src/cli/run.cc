#include "cli/run.h"

#include <fmt/core.h>

#include <new>

#include "base/nearest.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/output.h"
#include "model/textbook.h"

namespace ullage::cli {
namespace {

using Command = Expected<int> (*)(const Invocation&);

Command function_of(std::string_view name) {
  if (name == "train") return train_command;
  if (name == "serve") return serve_command;
  if (name == "check") return check_command;
  if (name == "inspect") return inspect_command;
  if (name == "models") return models_command;
  if (name == "gpus") return gpus_command;
  if (name == "engines") return engines_command;
  if (name == "validate") return validate_command;
  if (name == "fit") return fit_command;
  if (name == "mfu") return mfu_command;
  if (name == "textbook") return textbook_command;
  return name == "replay" ? replay_command : nullptr;
}

tl::unexpected<Error> unknown_command(const std::string& name) {
  if (has_word(kLaterCommands, ' ', name)) return not_in_this_version(name);
  std::vector<std::string_view> known;
  for (const CommandSpec& command : commands()) known.push_back(command.name);
  const std::string hint = did_you_mean(nearest_names(name, known, 1));
  return fail(ErrorCode::invalid_argument, name.substr(0, 80),
              fmt::format("no such command; {}", hint.empty() ? "`ullage --help` lists all" : hint));
}

bool asks_help(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

Expected<int> show_help(std::span<const std::string> rest, const Streams& streams) {
  static constexpr CommandSpec kNothing{};
  const auto arguments = parse_arguments(kNothing, rest);
  if (!arguments) return tl::unexpected<Error>(arguments.error());
  return streams.out(general_help(language_of(*arguments, streams.surroundings))).map([] { return int{kAnswered}; });
}

Expected<int> run_command(const CommandSpec& command, std::span<const std::string> rest, const Streams& streams,
                          const Files& files) {
  const auto arguments = parse_arguments(command, rest);
  if (!arguments) return tl::unexpected<Error>(arguments.error());
  if (arguments->has("--help")) {
    return streams.out(command_help(command, language_of(*arguments, streams.surroundings))).map([] {
      return int{kAnswered};
    });
  }
  return function_of(command.name)({*arguments, streams, files});
}

Expected<int> answer(std::span<const std::string> args, const Streams& streams, const Files& files) {
  if (args.empty()) return fail(ErrorCode::invalid_argument, "command", "missing; `ullage --help` lists all");
  if (asks_help(args.front())) return show_help(args.subspan(1), streams);
  if (args.front() == "--version") return streams.out("ullage " ULLAGE_VERSION "\n").map([] { return int{kAnswered}; });
  if (model::textbook::bare_size(args.front())) return run_command(*find_command("textbook"), args, streams, files);
  const CommandSpec* command = find_command(args.front());
  if (command == nullptr) return unknown_command(args.front());
  return run_command(*command, args.subspan(1), streams, files);
}

// The one exception that input can cause: more layers than this machine has memory for.
Expected<int> answer_in_memory(std::span<const std::string> args, const Streams& streams, const Files& files) {
  try {
    return answer(args, streams, files);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::too_large, "memory", "not enough of it here for this question; ask for fewer layers");
  }
}

}  // namespace

int run(std::span<const std::string> args, const Streams& streams, const Files& files) {
  const Expected<int> status = answer_in_memory(args, streams, files);
  if (status) return *status;
  streams.err("ullage: " + printable(to_string(status.error())) + "\n");
  return status.error().code == ErrorCode::internal ? kOurFault : kWrongInput;
}

}  // namespace ullage::cli
