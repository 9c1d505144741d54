// From allocated bytes to the card: what PyTorch's allocator reserves, what the process takes besides, whether it fits,
// and the first allocation that fails where it does not.
#pragma once

#include "memory/attribution.h"
#include "report/prediction.h"
#include "report/train_report.h"

namespace ullage::report {

// Fills reserved and process bytes of `out.peak`, their components, the verdict, and what goes with them. `peak` is the
// step's highest moment. Of the processor's operators (--kernels cpu) there is nothing to say.
void add_card(Prediction& out, const TrainQuestion& question, const memory::Moment& peak);

}  // namespace ullage::report
