// Whose module code runs, and what of the other options that code knows.
#pragma once

#include "base/expected.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "engines/pytorch/code_base.h"
#include "model/architecture.h"

namespace ullage::cli {

// The choices of --modules and --modules-version; nullptr: the transformers library's code. Fails where an option
// contradicts the code base, or where it is none that is known.
Expected<const engines::pytorch::Choices*> code_of(const Arguments& arguments, const model::Architecture& architecture);

// Whether that code base builds what the configuration says of attention where transformers' class has one way.
Expected<void> check_attention_of(const engines::pytorch::Choices* code, const Json& config);

}  // namespace ullage::cli
