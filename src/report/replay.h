// What `ullage replay` says: recordings of allocations against what our allocator did with their requests.
#pragma once

#include <string>
#include <vector>

#include "evidence/recording.h"
#include "report/text_style.h"

namespace ullage::report {

struct ReplayedFile {
  std::string name;
  evidence::ReplayResult result;
};

std::string replay_json(const std::vector<ReplayedFile>& files);
std::string replay_text(const std::vector<ReplayedFile>& files, const TextStyle& style);

}  // namespace ullage::report
