// One generation, from arguments to what is known about it.
#pragma once

#include "cli/arguments.h"
#include "cli/serve_options.h"
#include "cli/streams.h"
#include "engines/transformers/serve.h"
#include "report/prediction.h"

namespace ullage::cli {

struct ServeAnswer {
  report::Prediction prediction;
  engines::transformers::ServeRun served;  // of several cards the worst's
  memory::AllocatorSettings allocator;
};

Expected<ServeAnswer> answer_serving(const Arguments& arguments, const Files& files);

// The same where MODEL has been loaded.
Expected<ServeAnswer> answer_serving(const Arguments& arguments, const LoadedModel& loaded, const Files& files);

}  // namespace ullage::cli
