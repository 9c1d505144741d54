// A predicted step as a file that other tools open: a memory snapshot as PyTorch pickles it, for pytorch.org/memory_viz
// and torch/cuda/_memory_viz.py, or a trace for Perfetto and Chrome.
//
// Nobody knows the times, so one microsecond passes for each event; the files say so.
#pragma once

#include <string>

#include "engines/pytorch/reserve.h"

namespace ullage::report {

// The program from its first allocation to the end of the step that is meant: all requests, frees and segments in
// `device_traces`, segments and blocks as they are at the end. Stacks are the operator, its module and its phase.
std::string snapshot_pickle(const engines::pytorch::ReserveQuestion& program);

// The step that is meant, after the same history: a counter of allocated bytes by component, one of reserved bytes, and
// a slice for each phase and operator with its FLOPs and bytes moved.
std::string trace_json(const engines::pytorch::ReserveQuestion& program);

}  // namespace ullage::report
