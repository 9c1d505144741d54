// TensorRT-LLM: the cache is a part of what is free once engine, activations and buffers are there.
//
// Sources: cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp (calculateMaxNumBlocks);
// tensorrt_llm/_torch/pyexecutor/_util.py (the PyTorch backend takes the same part behind a run of max_num_tokens);
// https://github.com/NVIDIA/TensorRT-LLM/issues/224: tokens are rounded up to whole blocks.
#pragma once

#include "engines/budget/options.h"
#include "engines/budget/pool.h"

namespace ullage::engines::tensorrt_llm {

budget::Pool pool(const budget::Options& options, const budget::Holdings& held);

}  // namespace ullage::engines::tensorrt_llm
