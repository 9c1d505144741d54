// vLLM's start, from arguments to what is known about it.
#pragma once

#include "cli/arguments.h"
#include "cli/streams.h"
#include "report/prediction.h"

namespace ullage::cli {

Expected<report::Prediction> answer_vllm(const Arguments& arguments, const Files& files);

}  // namespace ullage::cli
