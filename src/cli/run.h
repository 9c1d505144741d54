// The whole program as a function.
#pragma once

#include <span>
#include <string>

#include "cli/streams.h"

namespace ullage::cli {

enum Exit : int { kAnswered = 0, kOurFault = 1, kWrongInput = 2, kDoesNotFit = 3 };

// `args` without the program's name. Returns the exit status; says what is wrong in one line on streams.err.
int run(std::span<const std::string> args, const Streams& streams, const Files& files);

}  // namespace ullage::cli
