// `ullage serve --engine sglang`.
#pragma once

#include "cli/arguments.h"
#include "cli/streams.h"
#include "report/prediction.h"

namespace ullage::cli {

Expected<report::Prediction> answer_sglang(const Arguments& arguments, const Files& files);

}  // namespace ullage::cli
