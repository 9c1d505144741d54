#include "launch/launch.h"

#include <fmt/core.h>

#include <algorithm>

#include "launch/given_flags.h"
#include "launch/starter.h"
#include "launch/translate.h"
#include "launch/visible.h"

namespace ullage::launch {
namespace {

// Variables that `ullage serve --env` knows.
constexpr std::string_view kKnownVariables[] = {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS",
                                                "VLLM_USE_FLASHINFER_SAMPLER"};

void note(std::vector<ReadFlag>& list, const GivenFlag& given) {
  const std::string name = given.path.empty() ? given.flag.name : given.flag.name + "." + given.path;
  std::erase_if(list, [&](const ReadFlag& old) { return old.name == name; });
  list.push_back({name, given.value, given.flag.off, given.from});
}

// A switch that is off asks for what an option cannot say: that a default is not wanted.
Expected<void> take_flag(const GivenFlag& given, Gathered& gathered, Launch& launch) {
  switch (given.flag.role) {
    case Role::ignored: note(launch.ignored, given); return {};
    case Role::uncounted: note(launch.uncounted, given); return {};
    case Role::option:
    case Role::translated: break;
  }
  note(launch.read, given);
  if (!given.path.empty()) {
    gather_dotted(given, gathered);
    return {};
  }
  if (given.flag.role == Role::translated) return translate(given, gathered, launch);
  if (given.flag.off)
    std::erase_if(launch.options, [&](const ServeOption& old) { return old.name == given.flag.option; });
  else set_option(launch, given.flag.option, given.value);
  return {};
}

bool is_config(const GivenFlag& given) {
  return given.flag.name == "--config" || given.flag.name == "--extra_llm_api_options";
}

Expected<void> add_files(Engine engine, const ReadFile& read_file, GivenFlags& given) {
  std::vector<std::string> paths;
  for (const GivenFlag& flag : given.flags) {
    if (is_config(flag)) paths.push_back(flag.value);
  }
  for (const std::string& path : paths) {
    const auto text = read_file(path);
    if (!text) return tl::unexpected<Error>(text.error());
    if (auto added = add_file(engine, *text, path, given); !added) return added;
  }
  return {};
}

void take_environment(const Started& started, Launch& launch) {
  for (const auto& [name, value] : started.environment) {
    const bool known =
        std::find(std::begin(kKnownVariables), std::end(kKnownVariables), name) != std::end(kKnownVariables);
    if (known && launch.engine == Engine::vllm) launch.options.push_back({"--env", name + "=" + value});
    else if (!says_visible(name)) launch.ignored_env.push_back(name);
  }
  if (const auto visible = visible_gpus(started.environment)) {
    launch.visible_gpus = visible->gpus;
    launch.visible_by = visible->by;
  } else if (started.gpus) {
    launch.visible_gpus = started.gpus;
    launch.visible_by = started.gpus_by;
  }
}

bool spans_hosts(const Launch& launch) {
  return std::any_of(launch.ignored.begin(), launch.ignored.end(), [](const ReadFlag& flag) {
    if (flag.name == "--nnodes") return flag.value != "1";
    if (flag.name == "--distributed-executor-backend") return flag.value == "ray";
    return flag.name == "--headless" || flag.name == "--data-parallel-size-local" || flag.name == "--dist-init-addr";
  });
}

}  // namespace

void set_option(Launch& launch, std::string_view name, std::string value) {
  for (ServeOption& option : launch.options) {
    if (option.name != name) continue;
    option.value = std::move(value);
    return;
  }
  launch.options.push_back({std::string(name), std::move(value)});
}

Expected<Launch> read_launch(std::span<const std::string> words, const ReadFile& read_file) {
  auto started = find_engine(words);
  if (!started) return tl::unexpected<Error>(started.error());
  Launch out;
  out.engine = started->engine;
  out.version = started->version;
  auto given = take_apart(out.engine, started->arguments);
  if (!given) return tl::unexpected<Error>(given.error());
  if (auto added = add_files(out.engine, read_file, *given); !added) return tl::unexpected<Error>(added.error());
  Gathered gathered;
  // A model named by its place comes before a file's. Source: docs.vllm.ai, serve arguments, configuration file.
  const bool placed = !given->positionals.empty();
  for (const GivenFlag& flag : given->flags) {
    if (placed && flag.flag.name == "--model" && !flag.from.empty()) continue;
    if (auto taken = take_flag(flag, gathered, out); !taken) return tl::unexpected<Error>(taken.error());
  }
  if (auto done = translate_gathered(gathered, out); !done) return tl::unexpected<Error>(done.error());
  out.unknown = std::move(given->unknown);
  for (std::string& word : given->positionals) {
    if (out.model.empty()) out.model = std::move(word);
    else out.unknown.push_back({std::move(word), {}, {}});
  }
  take_environment(*started, out);
  out.several_hosts = spans_hosts(out);
  out.around = std::move(started->around);
  out.before = std::move(started->before);
  out.arguments = std::move(started->arguments);
  return out;
}

std::vector<std::string> serve_words(const Launch& launch) {
  std::vector<std::string> out{"serve", launch.model, "--engine", std::string(engine_word(launch.engine))};
  for (const ServeOption& option : launch.options) {
    out.push_back(option.name);
    if (!option.value.empty()) out.push_back(option.value);
  }
  return out;
}

}  // namespace ullage::launch
