// What SGLang itself says when it starts, in the words of its releases: people search for these.
//
// Sources: sglang/srt/model_executor/model_runner.py, pool_configurator.py and cuda_graph_runner.py,
// sglang/srt/mem_cache/memory_pool.py, sglang/srt/managers/scheduler.py and tp_worker.py.
#pragma once

#include <string>
#include <vector>

#include "engines/sglang/budget.h"

namespace ullage::engines::sglang {

// Lines about weights, pools and what is left; none of what it does not come to.
std::vector<std::string> log_lines(const Budget& budget, const Options& options);

// The error that ends the start, or the first full load; empty where there is none.
std::string refusal(const Budget& budget, const Options& options);

}  // namespace ullage::engines::sglang
