#include "launch/starter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/json.h"
#include "launch/visible.h"

namespace ullage::launch {
namespace {

constexpr int kMostNested = 4;  // bash -c in docker run in bash -c

struct Starter {
  std::string_view name;
  std::string_view subcommand;   // that has to follow; empty: none
  std::string_view with_values;  // options that take the next word
  int operands = 0;              // words of its own before the command
};

// Source: their manual pages.
constexpr Starter kStarters[] = {
    {"env", "", "-u --unset -C --chdir"},
    {"sudo", "", "-u --user -g --group -C -D"},
    {"nohup", "", ""},
    {"time", "", "-f -o"},
    {"exec", "", "-a"},
    {"command", "", ""},
    {"setsid", "", ""},
    {"unbuffer", "", ""},
    {"stdbuf", "", "-i -o -e"},
    {"nice", "", "-n"},
    {"ionice", "", "-c -n -p"},
    {"numactl", "", "-N -m -C -i -p --cpunodebind --membind --physcpubind --interleave"},
    {"taskset", "", "-c", 1},
    {"timeout", "", "-k -s", 1},
    {"screen", "", "-S -L"},
    {"uv", "run", "--with --python -p --extra --group --project --directory"},
    {"uvx", "", "--with --from --python -p"},
    {"poetry", "run", ""},
    {"pixi", "run", "-e"},
    {"conda", "run", "-n --name -p --prefix"},
    {"micromamba", "run", "-n -p"},
    {"srun", "", "-N -n -c -p -J -w -t -A -G --gres --partition --nodes --ntasks --job-name --time --mem"},
    {"mpirun", "", "-n -np -x -H --host --hostfile --map-by --bind-to --mca"},
    {"nsys", "profile", "-o -t --trace --output --delay --duration"},
    {"accelerate", "launch", "--num_processes --num_machines --mixed_precision --config_file --main_process_port"},
    {"torchrun", "",
     "--nproc_per_node --nproc-per-node --nnodes --node_rank --node-rank --master_addr --master-addr --master_port "
     "--master-port --rdzv_id --rdzv_backend --rdzv_endpoint --rdzv-id --rdzv-backend --rdzv-endpoint"},
};

// Options of `docker run` that take the next word. Source: docs.docker.com/reference/cli/docker/container/run.
constexpr std::string_view kContainerValues =
    "-v --volume -p --publish -e --env --env-file --name --shm-size --gpus --runtime --network --net --ipc --ulimit "
    "--entrypoint --restart --cap-add --cap-drop --security-opt --device --group-add -u --user -w --workdir -h "
    "--hostname --memory -m --memory-swap --cpus --cpuset-cpus --mount --pid --add-host --dns -l --label --log-opt "
    "--log-driver --pull --platform --tmpfs --userns --annotation --health-cmd";

constexpr std::string_view kLater =
    "llama-server llama-cli llama-bench ollama llamafactory-cli swift deepspeed lmdeploy text-generation-launcher "
    "mindie-service ktransformers tgi torchtitan";

bool has_name(std::string_view list, std::string_view name) {
  for (std::size_t at = list.find(name); at != std::string_view::npos; at = list.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return !name.empty();
  }
  return false;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_python(std::string_view name) {
  return name.starts_with("python") && std::all_of(name.begin() + 6, name.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
         });
}

struct Entry {
  std::string_view name;  // of a module, or how the path of a script ends
  Engine engine;
  std::string_view subcommand;  // that has to follow
};

constexpr Entry kModules[] = {
    {"vllm.entrypoints.openai.api_server", Engine::vllm, ""},
    {"vllm.entrypoints.api_server", Engine::vllm, ""},
    {"vllm.entrypoints.cli.main", Engine::vllm, "serve"},
    {"vllm.scripts", Engine::vllm, "serve"},
    {"vllm", Engine::vllm, "serve"},
    {"sglang.launch_server", Engine::sglang, ""},
    {"sglang.cli.main", Engine::sglang, "serve"},
    {"sglang", Engine::sglang, "serve"},
    {"tensorrt_llm.commands.serve", Engine::tensorrt_llm, ""},
};

constexpr Entry kScripts[] = {
    {"openai/api_server.py", Engine::vllm, ""},
    {"entrypoints/api_server.py", Engine::vllm, ""},
    {"sglang/launch_server.py", Engine::sglang, ""},
};

constexpr Entry kPrograms[] = {
    {"vllm", Engine::vllm, "serve"},
    {"sglang", Engine::sglang, "serve"},
    {"trtllm-serve", Engine::tensorrt_llm, ""},
};

// "0.9.1" of "vllm/vllm-openai:v0.9.1", for images whose tags number the engine's releases.
std::string version_of(std::string_view image) {
  const bool numbered = image.find("vllm/vllm-openai") != std::string_view::npos ||
                        image.find("lmsysorg/sglang") != std::string_view::npos ||
                        image.find("tensorrt-llm/release") != std::string_view::npos;
  const std::size_t colon = image.rfind(':');
  if (!numbered || colon == std::string_view::npos) return {};
  std::string_view tag = image.substr(colon + 1);
  if (tag.starts_with('v')) tag.remove_prefix(1);
  std::size_t end = 0;
  std::size_t dots = 0;
  while (end < tag.size() && (std::isdigit(static_cast<unsigned char>(tag[end])) != 0 || tag[end] == '.')) {
    dots += tag[end] == '.' ? 1 : 0;
    ++end;
  }
  while (end > 0 && tag[end - 1] == '.') --end;
  return dots == 0 ? std::string() : std::string(tag.substr(0, end));
}

class Finder {
 public:
  Finder(std::span<const std::string> words, int nested) : words_(words), nested_(nested) {}

  Expected<Started> run() {
    while (at_ < words_.size()) {
      if (is_assignment(words_[at_])) {
        assign(out_.environment, words_[at_++]);
        continue;
      }
      const std::string_view name = base_name(words_[at_]);
      if (name == "docker" || name == "podman" || name == "nerdctl") {
        if (!enter_container(name)) return nothing(std::string(name));
        if (arguments_follow_) return done(Engine::vllm);
        continue;
      }
      if (name == "bash" || name == "sh" || name == "zsh" || name == "dash") return script();
      if (is_python(name)) return python();
      if (name == "torchrun" || name == "accelerate") return launcher(name);
      for (const Entry& program : kPrograms) {
        if (name == program.name) return entered(program);
      }
      if (!pass_starter(name)) return nothing(std::string(name));
    }
    return nothing(words_.empty() ? std::string() : words_.back());
  }

 private:
  bool more() const { return at_ < words_.size(); }
  bool is_option() const { return more() && words_[at_].size() > 1 && words_[at_].front() == '-'; }

  // Options of a starter, with the values of those that take the next word.
  void pass_options(std::string_view with_values) {
    while (is_option()) {
      const std::string& option = words_[at_++];
      if (option == "--") return;
      if (has_name(with_values, option) && more()) ++at_;
    }
  }

  bool pass_starter(std::string_view name) {
    for (const Starter& starter : kStarters) {
      if (starter.name != name) continue;
      ++at_;
      if (!starter.subcommand.empty()) {
        if (!more() || words_[at_] != starter.subcommand) return false;
        ++at_;
      }
      pass_options(starter.with_values);
      at_ = std::min(at_ + static_cast<std::size_t>(starter.operands), words_.size());
      return true;
    }
    return false;
  }

  // "docker run … IMAGE", "docker exec … CONTAINER".
  bool enter_container(std::string_view name) {
    ++at_;
    if (more() && words_[at_] == "container") ++at_;
    if (!more() || (words_[at_] != "run" && words_[at_] != "exec")) return false;
    const bool runs = words_[at_++] == "run";
    std::string entrypoint;
    while (is_option()) {
      std::string option = words_[at_++];
      std::string value;
      const std::size_t equals = option.find('=');
      if (option.starts_with("--") && equals != std::string::npos) {
        value = option.substr(equals + 1);
        option.resize(equals);
      } else if (has_name(kContainerValues, option) && more()) {
        value = words_[at_++];
      }
      take_container_option(option, value);
      if (option == "--entrypoint") entrypoint = value;
    }
    if (!more()) return false;
    const std::string image = words_[at_++];
    out_.around.push_back(fmt::format("{} {} {}", name, runs ? "run" : "exec", image));
    if (!runs) return true;
    out_.version = version_of(image);
    return enter_image(image, entrypoint);
  }

  void take_container_option(const std::string& option, const std::string& value) {
    if ((option == "-e" || option == "--env") && is_assignment(value)) assign(out_.environment, value);
    if (option != "--gpus") return;
    const auto gpus = container_gpus(value);
    if (!gpus) return;
    out_.gpus = gpus;
    out_.gpus_by = "--gpus";
  }

  // vLLM's own image starts its server; others start what follows.
  bool enter_image(std::string_view image, const std::string& entrypoint) {
    if (!entrypoint.empty()) {
      inner_.assign({entrypoint});
      inner_.insert(inner_.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
      before_.assign(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(at_));
      entered_by_option_ = true;
      words_ = inner_;
      at_ = 0;
      return true;
    }
    if (image.find("vllm-openai") == std::string_view::npos) return true;
    const std::string_view next = more() ? base_name(words_[at_]) : std::string_view();
    const bool starts = next == "bash" || next == "sh" || is_python(next) || next == "vllm";
    arguments_follow_ = !starts;
    return true;
  }

  // bash -c 'text', bash -lc 'text'.
  Expected<Started> script() {
    const std::string shell = words_[at_++];
    while (is_option()) {
      const std::string option = words_[at_++];
      if (option.starts_with("--") || option.find('c') == std::string::npos || !more()) continue;
      return text_of_script(words_[at_]);
    }
    if (!more()) return nothing(shell);
    return fail(
        ErrorCode::unsupported, excerpt(words_[at_]),
        fmt::format("a script that {} reads is not looked into; paste its text as one argument", excerpt(shell)));
  }

  Expected<Started> text_of_script(const std::string& text) {
    if (nested_ >= kMostNested) return fail(ErrorCode::too_large, "COMMAND", "shells within shells within shells");
    const auto commands = split_shell(text);
    if (!commands) return tl::unexpected<Error>(commands.error());
    std::optional<Error> problem;
    for (const ShellCommand& command : *commands) {
      // Variables in front belong to the command as it is written.
      std::vector<std::string> words;
      for (const auto& [name, value] : command.environment) words.push_back(fmt::format("{}={}", name, value));
      words.insert(words.end(), command.words.begin(), command.words.end());
      auto found = Finder(words, nested_ + 1).run();
      if (!found) {
        if (!problem || found.error().code == ErrorCode::unsupported) problem = std::move(found.error());
        continue;
      }
      return merged(*std::move(found));
    }
    if (problem) return tl::unexpected<Error>(*std::move(problem));
    return nothing(text);
  }

  // What surrounds the inner command counts, unless the inner says otherwise.
  Started merged(Started inner) {
    Variables all = out_.environment;
    for (const auto& [name, value] : inner.environment) assign(all, name + "=" + value);
    inner.environment = std::move(all);
    inner.around.insert(inner.around.begin(), out_.around.begin(), out_.around.end());
    if (inner.version.empty()) inner.version = out_.version;
    if (!inner.gpus) {
      inner.gpus = out_.gpus;
      inner.gpus_by = out_.gpus_by;
    }
    return inner;
  }

  Expected<Started> python() {
    ++at_;
    while (is_option() && words_[at_] != "-m") {
      const bool valued = words_[at_] == "-X" || words_[at_] == "-W";
      at_ = std::min(at_ + (valued ? 2U : 1U), words_.size());
    }
    return module_or_script();
  }

  Expected<Started> launcher(std::string_view name) {
    out_.around.emplace_back(name);
    if (!pass_starter(name)) return nothing(std::string(name));
    // -m was passed over as an option.
    if (more() && words_[at_ - 1] == "-m") --at_;
    return module_or_script();
  }

  Expected<Started> module_or_script() {
    if (!more()) return nothing("python");
    const bool module = words_[at_] == "-m" && at_ + 1 < words_.size();
    if (module) ++at_;
    const std::string& name = words_[at_];
    if (module && (name == "torch.distributed.run" || name == "torch.distributed.launch")) {
      return Finder(rest_as("torchrun"), nested_ + 1).run().map([&](Started inner) {
        return merged(std::move(inner));
      });
    }
    for (const Entry& entry : module ? std::span<const Entry>(kModules) : std::span<const Entry>(kScripts)) {
      if (module ? name == entry.name : std::string_view(name).ends_with(entry.name)) return entered(entry);
    }
    return nothing(name);
  }

  std::span<const std::string> rest_as(std::string first) {
    inner_.assign({std::move(first)});
    inner_.insert(inner_.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words_.end());
    return inner_;
  }

  Expected<Started> entered(const Entry& entry) {
    ++at_;
    if (!entry.subcommand.empty()) {
      if (!more() || words_[at_] != entry.subcommand) {
        return fail(ErrorCode::unsupported,
                    fmt::format("{} {}", entry.name, more() ? excerpt(words_[at_]) : std::string()),
                    fmt::format("is not in this version; `{} {}` is", entry.name, entry.subcommand));
      }
      ++at_;
    } else if (entry.engine == Engine::tensorrt_llm && more() && words_[at_] == "serve") {
      ++at_;
    }
    return done(entry.engine);
  }

  Expected<Started> done(Engine engine) {
    out_.engine = engine;
    const auto here = words_.begin() + static_cast<std::ptrdiff_t>(at_);
    // An entrypoint stands among the options of the container already.
    if (entered_by_option_) {
      out_.before = before_;
      out_.before.insert(out_.before.end(), words_.begin() + 1, here);
    } else {
      out_.before.assign(words_.begin(), here);
    }
    out_.arguments.assign(here, words_.end());
    return std::move(out_);
  }

  tl::unexpected<Error> nothing(const std::string& what) const {
    const std::string shown = excerpt(base_name(what));
    if (has_name(kLater, shown)) return fail(ErrorCode::unsupported, shown, "starting it is not in this version");
    return fail(ErrorCode::invalid_argument, shown.empty() ? "COMMAND" : shown,
                "starts no engine that is known; expected vllm serve, python -m vllm.entrypoints.openai.api_server, "
                "python -m sglang.launch_server, sglang serve or trtllm-serve");
  }

  std::span<const std::string> words_;
  int nested_ = 0;
  std::size_t at_ = 0;
  bool arguments_follow_ = false;
  bool entered_by_option_ = false;
  std::vector<std::string> inner_;
  std::vector<std::string> before_;
  Started out_;
};

}  // namespace

Expected<Started> find_engine(std::span<const std::string> words) {
  if (words.size() == 1 && words.front().find_first_of(" \n\t") != std::string::npos) {
    const std::vector<std::string> script{"sh", "-c", words.front()};
    return Finder(script, 0).run();
  }
  return Finder(words, 0).run();
}

}  // namespace ullage::launch
