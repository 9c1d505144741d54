#include "hub/refusal.h"

#include <fmt/core.h>

#include "base/printable.h"

namespace ullage::hub {
namespace {

constexpr std::size_t kLongestMessage = 200;

std::string_view code_of(const FileResponse& response) { return response.hub.find("X-Error-Code"); }

// ": what the server says", as far as it says anything.
std::string message_of(const FileResponse& response) {
  const std::string_view message = response.hub.find("X-Error-Message").substr(0, kLongestMessage);
  return message.empty() ? std::string() : ": " + printable(std::string(message));
}

tl::unexpected<Error> gated(const FileResponse& response, const Asked& asked) {
  const std::string agree = fmt::format("agree at {}/{}", asked.settings.endpoint, asked.id);
  return fail(ErrorCode::invalid_argument, asked.id,
              fmt::format("is gated ({}){}; {} {}", response.status, message_of(response), agree,
                          asked.settings.token.empty() ? "and set HF_TOKEN" : "with the account of the token"));
}

tl::unexpected<Error> no_model(const FileResponse& response, const Asked& asked) {
  return fail(
      ErrorCode::not_found, asked.id,
      fmt::format("{} shows no such model ({}); check the name, or {} if it is private", asked.settings.endpoint,
                  response.status, asked.settings.token.empty() ? "set HF_TOKEN" : "use a token that may read it,"));
}

}  // namespace

bool lacks_file(const FileResponse& response) { return response.status == 404 && code_of(response) == "EntryNotFound"; }

Expected<void> check_answer(const FileResponse& response, const Asked& asked) {
  const std::string_view code = code_of(response);
  const std::string file = asked.id + "/" + asked.path;
  if (response.status == 200 || response.status == 206 || response.status == 416) return {};
  if (code == "GatedRepo") return gated(response, asked);
  if (code == "RevisionNotFound")
    return fail(ErrorCode::not_found, asked.id + "@" + printable(asked.revision),
                "the model has no such revision (404); leave @… out for the newest");
  if (lacks_file(response)) return fail(ErrorCode::not_found, file, "the model has no such file (404)");
  if (response.status == 401 || code == "RepoNotFound") return no_model(response, asked);
  if (response.status == 404) return fail(ErrorCode::not_found, file, "is not there (404); check the name");
  if (response.status == 403)
    return fail(ErrorCode::invalid_argument, file,
                fmt::format("may not be read (403){}; set HF_TOKEN to one that may", message_of(response)));
  return fail(ErrorCode::io, file,
              fmt::format("the answer is status {}{}; see whether HF_ENDPOINT is the Hub's address", response.status,
                          message_of(response)));
}

}  // namespace ullage::hub
