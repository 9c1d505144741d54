// The start of an engine that shares a card out by one rule (TensorRT-LLM, MindIE, LMDeploy, TGI), from arguments to
// what is known about it.
#pragma once

#include "cli/arguments.h"
#include "cli/streams.h"
#include "report/prediction.h"

namespace ullage::cli {

Expected<report::Prediction> answer_budget(const Arguments& arguments, const Files& files);

}  // namespace ullage::cli
