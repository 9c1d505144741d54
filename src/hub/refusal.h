// What the Hub's refusals mean, in one line each.
#pragma once

#include <string>

#include "hub/fetch.h"

namespace ullage::hub {

struct Asked {
  std::string id;
  std::string revision;
  std::string path;
  const Settings& settings;
};

// Nothing for an answer that brings the file: 200 and 206, and 416 for an empty one.
// Source of the codes: huggingface_hub 1.23, utils/_http.py, hf_raise_for_status.
Expected<void> check_answer(const FileResponse& response, const Asked& asked);

// Whether the model is there and has no such file.
bool lacks_file(const FileResponse& response);

}  // namespace ullage::hub
