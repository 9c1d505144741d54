// One function a command. Each writes its answer and returns the exit status, or the error that run() reports.
#pragma once

#include <span>
#include <string>

#include "cli/arguments.h"
#include "cli/streams.h"
#include "cli/train_answer.h"
#include "report/prediction.h"

namespace ullage::cli {

struct Invocation {
  const Arguments& arguments;
  const Streams& streams;
  const Files& files;
};

Expected<int> train_command(const Invocation& invocation);
Expected<int> serve_command(const Invocation& invocation);
Expected<int> check_command(const Invocation& invocation);
Expected<int> inspect_command(const Invocation& invocation);
Expected<int> models_command(const Invocation& invocation);
Expected<int> gpus_command(const Invocation& invocation);
Expected<int> engines_command(const Invocation& invocation);
Expected<int> validate_command(const Invocation& invocation);
Expected<int> replay_command(const Invocation& invocation);
Expected<int> fit_command(const Invocation& invocation);
Expected<int> mfu_command(const Invocation& invocation);
Expected<int> textbook_command(const Invocation& invocation);

// What `ullage train …` predicts; `arguments` are those behind the word "train", parsed.
Expected<report::Prediction> predict_training(const Arguments& arguments, const Files& files, Ranges ranges);

// The same with what is found in place of `max`, and with advice where it is wanted.
Expected<report::Prediction> predict_with_all(const Arguments& arguments, const Files& files);

// What `ullage serve …` predicts, by whichever engine.
Expected<report::Prediction> predict_serving(const Arguments& arguments, const Files& files);

// What the words of a command line ask for, "train" or "serve" first, as a case of the corpus has them.
// ErrorCode::unsupported where they ask for what is not in this version.
Expected<report::Prediction> predict(std::span<const std::string> words, const Files& files);

}  // namespace ullage::cli
