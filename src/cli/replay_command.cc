// `ullage replay FILE.json…`: recordings of allocations through our allocator.
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run.h"
#include "report/replay.h"

namespace ullage::cli {

Expected<int> replay_command(const Invocation& invocation) {
  const auto style = text_style(invocation.arguments, invocation.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const std::vector<std::string>& paths = invocation.arguments.positionals();
  if (paths.empty()) return fail(ErrorCode::invalid_argument, "FILE.json", "missing; name a recording of allocations");
  std::vector<report::ReplayedFile> files;
  for (const std::string& path : paths) {
    const auto text = invocation.files.read(path, evidence::kMostRecordingBytes);
    if (!text) return tl::unexpected<Error>(text.error());
    const auto recording = evidence::read_recording(*text, path);
    if (!recording) return tl::unexpected<Error>(recording.error());
    const auto result = evidence::replay(*recording, path);
    if (!result) return tl::unexpected<Error>(result.error());
    files.push_back({path, *result});
  }
  const bool json = wants_json(invocation.arguments);
  return invocation.streams.out(json ? report::replay_json(files) : report::replay_text(files, *style)).map([] {
    return int{kAnswered};
  });
}

}  // namespace ullage::cli
