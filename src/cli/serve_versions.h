// --engine-version A,B: the same question to two releases.
#pragma once

#include "cli/commands.h"
#include "report/versions.h"

namespace ullage::cli {

bool asks_two_versions(const Arguments& arguments);

Expected<report::VersionPair> predict_versions(const Arguments& arguments, const Files& files);

// The answer in the form that the arguments ask for.
std::string versions_answer(const Arguments& arguments, const report::VersionPair& pair,
                            const report::TextStyle& style);

}  // namespace ullage::cli
