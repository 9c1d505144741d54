// What is wrong, word for word: one line on standard error, nothing on standard output, exit status 2.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/captured_run.h"

namespace ullage {
namespace {

using testing::Captured;
using testing::run;

struct Wrong {
  const char* line;
  const char* says;  // behind "ullage: "
};

void expect_error(const Captured& captured, const std::string& says) {
  EXPECT_EQ(captured.status, 2);
  EXPECT_EQ(captured.err, "ullage: " + says + "\n");
  EXPECT_EQ(captured.out, "");
}

class Errors : public ::testing::TestWithParam<Wrong> {};

TEST_P(Errors, AreOneClearLine) { expect_error(run(GetParam().line), GetParam().says); }

constexpr Wrong kWords[] = {
    {"", "command: missing; `ullage --help` lists all"},
    {"trian", "trian: no such command; did you mean train?"},
    {"frobnicate", "frobnicate: no such command; `ullage --help` lists all"},
    {"check gpt2", "COMMAND: missing; write `ullage check -- vllm serve MODEL`, two dashes in front of it"},
    {"check -- llama-server -m model.gguf", "llama-server: starting it is not in this version"},
    {"check -- vllm serve", "COMMAND: names no model; add it, or name one with --model"},
    {"check -- vllm serve gpt2 --max-model-len", "--max-model-len: needs a value"},
    {"check -- vllm serve gpt2 --max-num-seqs many", "--max-num-seqs: 'many' is not a whole number from 1 to 1048576"},
    {"plan gpt2", "plan: is not in this version"},
    {"mfu", "--tflops: nothing measured; give --tflops, --tokens-per-second or --examples-per-second"},
    {"mfu --tflops 100", "--gpu: missing; the peak is that of a card, or --cores and --clock-ghz"},
    {"mfu --tflops 0 --gpu h100", "--tflops: must be more than 0"},
    {"mfu --tflops 1e300 --gpu h100", "--tflops: 1e+300 cannot be meant; expected 1e-09 to 1e+15"},
    {"99999999999B", "99999999999B: is no size of a model: more than 100T parameters; write one such as 7B or 350M"},
    {"inspect 60T",
     "6e+13 parameters: no model of about this size is known; the nearest is deepseek-ai/DeepSeek-V3: name a model, or "
     "ask `ullage textbook` for the formulas alone"},
    {"mfu --tflops 1 --tokens-per-second 1 --gpu h100",
     "--tflops: one measurement is enough; give one of --tflops, --tokens-per-second, --examples-per-second"},
    {"mfu --examples-per-second 3", "--seq-len: missing; an example is so many tokens"},
    {"mfu --cores 1280", "--clock-ghz: missing; a peak takes --cores and --clock-ghz"},
    {"mfu --cores 1280 --clock-ghz 1 --gpu h100", "--cores: contradicts --gpu, whose peak is known; give one of them"},
    {"mfu --tflops 1 --gpu a100 --precision fp8",
     "--precision: no peak of A100-SXM4-80GB in fp8 is known; choose another, or give --cores and --clock-ghz"},
    {"mfu --tflops 1 --gpu a100,h100", "--gpu: one peak is meant; name equal cards"},
    {"mfu --tflops 1 --gpu a100 --reference 5", "--reference: compares throughput; give --tokens-per-second"},
    {"mfu --tokens-per-second 1 --reference gpt-9",
     "--reference: 'gpt-9' is neither tokens per second of one GPU nor a run that is known here; known are llama-7b, "
     "llama-13b, llama-33b, llama-65b, llama-2-7b, llama-2-13b, llama-2-70b"},
    {"mfu resnet50 --tokens-per-second 1", "MODEL: resnet50 takes no text; throughput in tokens is of language models"},
    {"mfu --trace x.json", "--trace: is not in this version"},
    {"textbook", "SIZE: missing; write one such as 7B, or --layers and --hidden, or --matrix and --lora"},
    {"textbook gpt2", "gpt2: is no size; write one such as 7B or 350M"},
    {"7B --matrix 1024 --lora 8", "--matrix: '1024' is no shape; write one such as 1024x512"},
    {"7B --matrix 1024x512", "--matrix: is what an adapter is added to; give its rank with --lora"},
    {"7B --cache-memory 40GiB", "--cache-memory: is divided by what a token takes; give --bytes-per-token"},
    {"7B --only cache",
     "--only: 'cache' is none of the lines; here they are weights, serving_1.2, serving_1.3, training_16, training_20, "
     "training_units, training_units_kernels, activations, sample, parameters_by_shape, kv_cache"},
    {"7B --layers 0", "--layers: '0' is not a whole number from 1 to 100000"},
    {"7B --gpu a100,h100", "--gpu: the formulas know equal cards only; name one kind"},
    {"train", "MODEL: missing; write `ullage train MODEL`"},
    {"train gpt2 gpt3", "gpt3: one argument too many; `ullage --help` shows what goes where"},
    {"train gpt2 --seqlen 4", "--seqlen: no such option; did you mean --seq-len?"},
    {"train gpt2 --zzzzzzzz", "--zzzzzzzz: no such option; `ullage train --help` lists all"},
    {"train gpt2 -x", "-x: no such option; `ullage train --help` lists all"},
    {"train gpt2 --seq-len", "--seq-len: needs a value"},
    {"train gpt2 --seq-len 4 --seq-len 5", "--seq-len: given more than once; give it once"},
    {"train gpt2 --quiet --verbose", "--quiet: contradicts --verbose; give one of them"},
    {"train gpt2 --units GiBs", "--units: 'GiBs' is not one of GiB, GB, MiB, bytes; did you mean GiB?"},
};

constexpr Wrong kNotBuilt[] = {
    {"inspect gpt2 --html x.html", "--html: is not in this version"},
    {"train gpt2 --tuner adapter-v2", "--tuner: adapter-v2 without --modules litgpt is not in this version"},
    {"train gpt2 --tuner dora", "--tuner: needs a rank; add --lora RANK"},
    {"train gpt2 --tuner ia3 --lora 8", "--lora: does not go with --tuner ia3; leave it out"},
    {"train gpt2 --tuner ia3 --virtual-tokens 8", "--virtual-tokens: does not go with --tuner ia3; leave it out"},
    {"train gpt2 --tuner ia3 --quantize-base nf4", "--quantize-base: with this --tuner is not in this version"},
    {"train gpt2 --lora 8 --virtual-tokens 8", "--virtual-tokens: does not go with --tuner lora; leave it out"},
    {"train gpt2 --virtual-tokens 8", "--virtual-tokens: needs adapters; add --lora RANK"},
    {"train gpt2 --tuner prompt --lora-targets c_attn",
     "--lora-targets: does not go with --tuner prompt; leave it out"},
    {"train gpt2 --tuner prompt --loss none", "--loss: other than full with virtual tokens is not in this version"},
    {"train gpt2 --tuner prefix --recompute full", "--recompute: PEFT refuses it with prefix tuning; leave it at none"},
    {"train gpt2 --tuner prompt", "--tuner: virtual tokens in front of gpt2 models are not in this version"},
    {"train openai/whisper-tiny --tuner ia3",
     "--lora-targets: PEFT knows no targets for whisper; name some, or all-linear"},
    {"train gpt2 --load torch --kernels cpu", "--load: brings weights to a card; leave it out with --kernels cpu"},
    {"train gpt2 --load torch --lora 8 --quantize-base nf4", "--load: with --quantize-base is not in this version"},
    {"train facebook/bart-base --loss fused", "--loss: fused for an encoder-decoder is not in this version"},
    {"train google/vit-base-patch16-224-in21k --image-size 256",
     "--image-size: 256 pixels, but the model has learned positions for images of 224; leave it out, or set "
     "image_size"},
    {"train google/vit-base-patch16-224-in21k --seq-len 7",
     "--seq-len: google/vit-base-patch16-224-in21k takes images; leave this option out"},
    {"train openai/whisper-tiny --seq-len 449",
     "--seq-len: 449 tokens, but the model has learned positions for 448 only"},
    {"train gpt2 --zero 3", "--zero: is not in this version"},
    {"train gpt2 --engine ddp", "--engine: ddp is not in this version"},
    {"train gpt2 --modules megatron", "--modules: megatron is not in this version"},
    {"train gpt2 --modules litgpt",
     "--modules: litgpt has no gpt2 with these positions; leave --modules at transformers"},
    {"train mistralai/Mistral-7B-v0.1 --modules litgpt --modules-version 9",
     "--modules-version: '9' of litgpt is not in this version; known are 2023-10, 0.4, 0.5"},
    {"train mistralai/Mistral-7B-v0.1 --modules litgpt --lora 8 --lora-targets wte",
     "--lora-targets: 'wte' is none of litgpt's query, key, value, projection, mlp, head, nor a family's name for one "
     "of them"},
    {"train gpt2 --modules-version 0.4", "--modules-version: belongs to other code bases; use --transformers"},
    {"train gpt2 --precision fp8", "--precision: fp8 is not in this version"},
    {"train gpt2 --lora 8 --quantize-base gptq --precision fp32",
     "--quantize-base: gptq computes in half precision; use --precision fp16 or bf16"},
    {"train gpt2 --lora 8 --quantize-base awq --prepare-kbit",
     "--prepare-kbit: with --quantize-base awq is not in this version"},
    {"train HuggingFaceTB/SmolLM-135M-Instruct --lora 8 --quantize-base awq",
     "--quantize-base: self_attn.q_proj.weight is 576 x 576, which groups of 128 by 8 do not fill; use another format"},
    {"train gpt2 --trainer hf --loss none", "--trainer: hf needs a loss; leave --loss none out"},
    {"train gpt2 --trainer hf --loss fused", "--loss: fused under autocast is not in this version"},
    {"train gpt2 --trainer hf --optimizer none", "--trainer: hf always has an optimizer; leave --optimizer none out"},
    {"train gpt2 --trainer hf --optimizer-in-backward",
     "--trainer: hf takes the norm of all gradients first; leave --optimizer-in-backward out"},
    {"train gpt2 --trainer hf --precision fp16",
     "--trainer: hf scales gradients, and PyTorch unscales none of fp16; use --precision amp-fp16 or bf16"},
    {"train gpt2 --trainer hf --kernels cpu", "--trainer: hf with --kernels cpu is not in this version"},
    {"train resnet50 --trainer hf", "--trainer: resnet50 returns no loss, which hf asks for; leave it out"},
    {"train google/vit-base-patch16-224-in21k --trainer hf",
     "--trainer: hf with images or sound alone is not in this version"},
    {"train mistralai/Mistral-7B-v0.1 --modules litgpt --trainer hf",
     "--trainer: litgpt has a loop of its own; leave it out"},
    {"train gpt2 --recompute-vision",
     "--recompute-vision: openai-community/gpt2 has no vision tower beside it; use --recompute full"},
    {"train gpt2 --transformers four", "--transformers: 'four' is no version; write it as 4.46"},
    {"train gpt2 --lora 8 --tuner dora --quantize-base nf4",
     "--quantize-base: with --tuner dora is not in this version"},
    {"train gpt2 --lora 8 --quantize-base int8 --recompute full",
     "--quantize-base: int8 with --recompute that is not reentrant is not in this version"},
    {"train gpt2 --loss chunked",
     "--loss: transformers has no chunked loss; use fused, Liger's, which takes some tokens at a time"},
    {"train gpt2 --compile", "--compile: without --modules torchtune is not in this version"},
    {"train gpt2 --offload activations", "--offload: without --modules torchtune is not in this version"},
    {"train gpt2 --offload optimizer", "--offload: optimizer is not in this version"},
    {"train mistralai/Mistral-7B-v0.1 --modules litgpt --offload activations",
     "--offload: without --modules torchtune is not in this version"},
    {"train mistralai/Mistral-7B-v0.1 --modules torchtune --offload activations",
     "--offload: torchtune's recipes take activations to the host with checkpoints alone; add --recompute full"},
    {"train mistralai/Mistral-7B-v0.1 --modules torchtune --lora 8 --quantize-base nf4",
     "--quantize-base: torchtune's adapters have torchao's NF4, whose scales are quantised, too: nf4-dq"},
    {"train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --modules torchtune --lora 8 --quantize-base nf4-dq --set "
     "intermediate_size=5633",
     "--quantize-base: mlp.w1.weight has 11536384 elements, no multiple of the 16384 that torchao's NF4 needs; leave "
     "it "
     "out"},
    {"train gpt2 --modules torchtitan", "--modules: torchtitan's Llama is no gpt2; leave --modules at transformers"},
    {"train mistralai/Mistral-7B-v0.1 --modules torchtitan --lora 8",
     "--lora: torchtitan trains all weights; leave it out"},
    {"train mistralai/Mistral-7B-v0.1 --modules torchtitan --precision fp16",
     "--precision: torchtitan has fp32, amp-bf16 (weights in fp32) and bf16 (autocast over weights in bf16)"},
    {"train mistralai/Mistral-7B-v0.1 --modules torchtitan --loss chunked",
     "--loss: torchtitan 0.2 has the full loss alone; leave it out"},
    {"train gpt2 --compile --modules litgpt", "--compile: without --modules torchtune is not in this version"},
    {"train gpt2 --lora-targets c_attn", "--lora-targets: needs adapters; add --lora RANK"},
    {"train gpt2 --lora 8 --lora-targets q_proj", "--lora-targets: 'q_proj' fits no module; did you mean c_proj?"},
    {"train gpt2 --lora 8 --lora-targets experts",
     "--lora-targets: 'experts' fits no module; known are c_attn, c_proj, c_fc"},
    {"train gpt2 --lora 8 --lora-targets c_atn", "--lora-targets: 'c_atn' fits no module; did you mean c_attn?"},
    {"train gpt2 --lora 8 --lora-targets c_attn,,",
     "--lora-targets: 'c_attn,,' is no list of names of modules with commas between them"},
    {"train gpt2 --lora 0", "--lora: '0' is not a whole number from 1 to 65536"},
    {"train gpt2 --lora 8 --lora-dropout 1", "--lora-dropout: must be less than 1"},
    {"train gpt2 --lora 8 --freeze wte", "--freeze: contradicts --lora, which freezes the whole model; leave it out"},
    {"train gpt2 --freeze wte,wpe,h,ln_f", "--freeze: nothing is left to train; name fewer modules"},
    {"train gpt2 --freeze hh",
     "--freeze: 'hh' fits no module; known are wte, wpe, ln_f, lm_head, ln_1, c_attn, c_proj, ln_2, c_fc"},
    {"train gpt2 --freeze wte,wpe,ln_1,ln_2,attn,mlp,ln_f", "--freeze: nothing is left to train; name fewer modules"},
    {"train gpt2 --quantize-base nf4", "--quantize-base: leaves nothing to train; add --lora RANK"},
    {"train gpt2 --prepare-kbit", "--prepare-kbit: prepares a quantised model; add --quantize-base"},
    {"train gpt2 --loss fused --precision amp-bf16", "--loss: fused under autocast is not in this version"},
    {"train resnet50 --loss fused", "--loss: fused belongs to language models; leave it out"},
    {"train gpt2 --optimizer rmsprop --optimizer-impl fused",
     "--optimizer-impl: rmsprop has no fused implementation; leave it out for foreach"},
    {"train gpt2 --optimizer-in-backward --clip-grad 1",
     "--optimizer-in-backward: contradicts --clip-grad, which needs all gradients; leave one out"},
    {"train gpt2 --recompute selective", "--recompute: selective is not in this version"},
    {"train EleutherAI/gpt-j-6b --attention flash", "--attention: flash for gptj is not in this version"},
    {"train gpt2 --gpus 2", "--gpus: training on several GPUs is not in this version"},
    {"train gpt2 --gpu 8xh100", "--gpu: training on several GPUs is not in this version"},
    {"train gpt2 --gpu local",
     "--gpu local: there is no NVIDIA driver here (libnvidia-ml.so.1); name the card instead (`ullage gpus` lists "
     "all)"},
    {"train gpt2 --torch 1.13", "--torch: 1.13 is not in this version; known are 2.0 to 2.14"},
    {"train gpt2 --torch 2.15", "--torch: 2.15 is not in this version; known are 2.0 to 2.14"},
    {"train gpt2 --torch new", "--torch: 'new' is no version; write it as 2.1"},
    {"train gpt2 --torch 2.0 --optimizer rmsprop", "--torch: 2.0 with rmsprop's foreach is not in this version"},
    {"train gpt2 --torch 2.1 --modules litgpt", "--torch: 2.1 is not in this version; known is 2.14"},
    {"train gpt2 --transformers 4.1",
     "--transformers: how 4.1 made the loss of gpt2 is not known; leave it out for 5.12"},
    {"train gpt2 --transformers 9.0",
     "--transformers: how 9.0 made the loss of gpt2 is not known; leave it out for 5.12"},
    {"train net.onnx", "net.onnx: reading ONNX files is not in this version"},
    {"train google/gemma-4-12B-it",
     "google/gemma-4-12B-it: model_type: of model type 'gemma4' the outline alone is known, not the forward pass; "
     "`ullage inspect` answers for its weights"},
};

constexpr Wrong kValues[] = {
    {"train net.gguf", "net.gguf: no such file"},
    {"train net.safetensors", "net.safetensors: no such file"},
    {"train gpt2 --grad-scaler --precision bf16",
     "--grad-scaler: scales the loss of fp16 under autocast; add --precision amp-fp16"},
    {"train gpt2 --optimizer admw",
     "--optimizer: 'admw' is not one of adamw, adam, sgd, sgd-momentum, adagrad, rmsprop, adafactor, lion, muon, "
     "adamw-8bit, paged-adamw-8bit, adamw-4bit, adamw-fp8, none; did you mean adamw?"},
    {"train gpt2 --precision bfloat",
     "--precision: 'bfloat' is not one of fp32, bf16, fp16, amp-bf16, amp-fp16, pure-bf16"},
    {"train gpt2 --micro-batch 0", "--micro-batch: '0' is not a whole number from 1 to 1048576"},
    {"train gpt2 --micro-batch -1", "--micro-batch: '-1' is not a whole number from 1 to 1048576"},
    {"train gpt2 --seq-len 1.5", "--seq-len: '1.5' is not a whole number from 1 to 67108864"},
    {"train gpt2 --seq-len 99999999999999999999",
     "--seq-len: '99999999999999999999' is not a whole number from 1 to 67108864"},
    {"train gpt2 --clip-grad -1", "--clip-grad: '-1' is not a number of 0 or more"},
    {"train gpt2 --gpu h100 --gpu-memory lots",
     "--gpu-memory: 'lots' is not a size; write a number with a unit, such as 79.1GiB or 80GB"},
    {"train gpt2 --micro-batch 2 --grad-accum 4 --global-batch 9",
     "--global-batch: 9 contradicts --micro-batch 2 and --grad-accum 4, which make 8; leave one out"},
    {"train gpt2 --micro-batch 2 --global-batch 9",
     "--global-batch: 9 is no multiple of --micro-batch 2; change one of them"},
    {"train gpt2 --grad-accum 2 --global-batch 9",
     "--global-batch: 9 is no multiple of --grad-accum 2; change one of them"},
    {"train gpt2 --recompute-reentrant", "--recompute-reentrant: contradicts --recompute none; add --recompute full"},
    {"train gpt2 --step forward --grad-accum 2",
     "--step: forward has no gradients; leave --grad-accum, --clip-grad and --grad-scaler out"},
    {"train gpt2 --image-size 224", "--image-size: openai-community/gpt2 takes text; use --seq-len"},
    {"train gpt2 --alloc-conf max_split_size_mb:10", "--alloc-conf: max_split_size_mb: must be greater than 20"},
    {"train gpt2 --timeline step.txt", "--timeline: expected FILE.pickle (a memory snapshot) or FILE.json (a trace)"},
    {"train gpt2 --image-max-pixels 90000",
     "--image-max-pixels: openai-community/gpt2 resizes no images; leave this option out"},
    {"train llava-hf/llava-1.5-7b-hf --image-max-pixels 90000",
     "--image-max-pixels: llava-hf/llava-1.5-7b-hf resizes no images; leave this option out"},
    {"train llava-hf/llava-1.5-7b-hf --image-size 448",
     "--image-size: 448 pixels, but the processor makes every image one of 336; leave it out"},
    {"train Qwen/Qwen2.5-VL-3B-Instruct --seq-len 256",
     "--seq-len: 256 tokens hold no image of 256 and the mark in front of it; use longer sequences or a smaller "
     "--image-size than 448"},
    {"train Qwen/Qwen2.5-VL-3B-Instruct --kernels cpu",
     "--kernels: cpu with a vision-language model is not in this version"},
    {"train Qwen/Qwen2.5-VL-3B-Instruct --loss fused",
     "--loss: fused with a vision-language model is not in this version"},
    {"train Qwen/Qwen2.5-VL-3B-Instruct --micro-batch 1000",
     "--micro-batch: 1000 images of 448 pixels a side, in 25 windows each, are more than can be followed; use a "
     "smaller "
     "micro-batch or smaller images"},
    {"train Qwen/Qwen2.5-VL-3B-Instruct --video-max-frames 8", "--video-max-frames: is not in this version"},
    {"train Qwen/Qwen2-VL-2B-Instruct --lora 8 --lora-targets proj",
     "--lora-targets: fits the convolution model.visual.patch_embed.proj too, whose adapter is not in this version; "
     "name modules by more of their path"},
    {"train gpt2 --require-fit", "--require-fit: nothing to fit into; name a card with --gpu"},
    {"train gpt2 --used 1GiB", "--used: says something about a card; name it with --gpu"},
    {"train gpt2 --seq-len 1025", "--seq-len: 1025 tokens, but the model has learned positions for 1024 only"},
    {"inspect", "MODEL: missing; name a model, or a shape with --tensor"},
    {"inspect gpt2 --tensor 3x3", "--tensor: describes a tensor without a model; leave MODEL out"},
    {"inspect --tensor 3y3", "--tensor: '3y3' is not a shape; write sizes of 1 or more such as 32x3x256x256"},
    {"inspect --tensor 3 --dtype fp3",
     "--dtype: 'fp3' is no element type; choose fp32, bf16, fp16, fp64, int64, int32, uint8 or bool"},
    {"inspect gpt2 --quantization int3",
     "--quantization: 'int3' is no way of storing weights; known are fp32, bf16, fp16, fp8, fp8-block, int8, nf4, "
     "nf4-dq, "
     "fp4, awq, gptq, int4, nvfp4, mxfp4 and llama.cpp's mixes such as Q4_K_M"},
    {"train zai-org/GLM-5.1",
     "zai-org/GLM-5.1: model_type: of model type 'glm_moe_dsa' the outline alone is known, not the forward pass; "
     "`ullage "
     "inspect` answers for its weights"},
    {"inspect zai-org/GLM-5.1 --seq-len 8",
     "--seq-len: of zai-org/GLM-5.1 no forward pass is known, only weights; leave it out"},
    {"inspect moonshotai/Kimi-K3",
     "moonshotai/Kimi-K3: model_type: model type 'kimi_k3' is not modelled for its delta attention of Kimi among "
     "latent "
     "experts; name a model without it"},
    {"inspect gpt2 --dtype int64", "--dtype: weights are floating-point numbers; choose fp32, bf16 or fp16"},
    {"gpus --min-compute-capability nine",
     "--min-compute-capability: 'nine' is no compute capability; write one such as 8.0"},
    {"train gpt2 --gpu rtx4091",
     "--gpu: no GPU named 'rtx4091'; did you mean rtx4090, rtx-4090 or rtx3090? `ullage gpus` lists all"},
    {"train gpt2 --gpu 0xh100", "--gpu: '0xh100' names 0 devices; expected 1 to 1000000"},
    {"train gtp2", "MODEL: no model named 'gtp2' in the catalogue; did you mean gpt2? `ullage models` lists all"},
    {"train some-org/some-unheard-of-net",
     "MODEL: no model named 'some-org/some-unheard-of-net' in the catalogue; `ullage models` lists all; the Hub: "
     "some-org/some-unheard-of-net/config.json: is not on this machine, and HF_HUB_OFFLINE forbids to fetch it; unset "
     "that"},
    {"gpus --sort size", "--sort: 'size' is not one of id, name, memory, usable, bandwidth, bf16, year, tdp"},
};

// The configuration of a model with one field changed.
constexpr Wrong kFields[] = {
    {"train gpt2 --set n_layer", "--set: 'n_layer' is not KEY=VALUE"},
    {"train gpt2 --set n_layer.x=1", "--set: 'n_layer.x=1' leads into something that is no object"},
    {"train gpt2 --set n_layer=-1",
     "openai-community/gpt2: n_layer: -1 is out of range; expected a whole number from 1 to 10000"},
    {"train gpt2 --set n_head=7",
     "openai-community/gpt2: n_head: 7 heads do not divide n_embd 768; change one of them"},
    {"train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --set num_key_value_heads=5",
     "TinyLlama/TinyLlama-1.1B-Chat-v1.0: num_key_value_heads: 5 key and value heads do not divide 32 query heads; set "
     "a divisor"},
    {"train gpt2 --set activation_function=geluu",
     "openai-community/gpt2: activation_function: activation 'geluu' is not modelled; did you mean gelu or relu?"},
};

INSTANTIATE_TEST_SUITE_P(Words, Errors, ::testing::ValuesIn(kWords));
INSTANTIATE_TEST_SUITE_P(NotBuilt, Errors, ::testing::ValuesIn(kNotBuilt));
INSTANTIATE_TEST_SUITE_P(Values, Errors, ::testing::ValuesIn(kValues));
INSTANTIATE_TEST_SUITE_P(Fields, Errors, ::testing::ValuesIn(kFields));

// Files of all the wrong kinds, in a folder of their own.
class WrongFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("ullage-errors-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
    return path(name);
  }

  std::filesystem::path folder_;
};

TEST_F(WrongFiles, MissingFile) {
  expect_error(run({"train", path("none.json")}),
               path("none.json") + ": no such file; name a config.json, its folder or a model of `ullage models`");
}

TEST_F(WrongFiles, FolderWithoutConfiguration) {
  expect_error(run({"train", folder_.string()}),
               folder_.string() + ": is a folder without config.json; name the folder of a model or its config.json");
}

TEST_F(WrongFiles, FolderForAFile) {
  std::filesystem::create_directories(folder_ / "config.json");
  expect_error(run({"train", folder_.string()}), path("config.json") + ": is a directory; name a file in it");
}

TEST_F(WrongFiles, MalformedJson) {
  const std::string file = write("config.json", "{\"model_type\": \"llama\",");
  expect_error(run({"train", file}), file + ": byte 24: not valid JSON here; check that the file is whole");
}

TEST_F(WrongFiles, NotAnObject) {
  const std::string file = write("config.json", "[1, 2]");
  expect_error(run({"train", file}), file + ": expected a JSON object with the model's configuration");
  expect_error(run({"train", file, "--set", "a=1"}), file + ": expected a JSON object with the model's configuration");
}

TEST_F(WrongFiles, WithoutModelType) {
  const std::string file = write("config.json", "{\"hidden_size\": 4}");
  expect_error(run({"train", file}), file + ": model_type: missing; is this the configuration of a model?");
}

TEST_F(WrongFiles, UnknownModelType) {
  const std::string file = write("config.json", "{\"model_type\": \"lama\"}");
  expect_error(run({"train", file}),
               file + ": model_type: model type 'lama' is not modelled; did you mean llama or llava?");
}

TEST_F(WrongFiles, TwoGigabytesAreRefusedUnread) {
  const std::string file = write("config.json", "{}");
  std::filesystem::resize_file(file, std::uintmax_t{2} << 30U);
  const auto begin = std::chrono::steady_clock::now();
  expect_error(run({"train", file}), file + ": has 2147483648 bytes; at most 4194304 are read here");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_F(WrongFiles, ControlCharactersDoNotReachTheTerminal) {
  expect_error(run({"train", path("a\x1b[31m\nb.json")}),
               path("a [31m b.json") + ": no such file; name a config.json, its folder or a model of `ullage models`");
}

// Every dimension of a configuration, negative, zero, absurd and of the wrong kind: refused, and never with a crash.
struct Field {
  const char* model;
  const char* key;
};

class Dimensions : public ::testing::TestWithParam<Field> {};

TEST_P(Dimensions, OutOfRangeAreRefusedByName) {
  for (const char* value :
       {"-1", "0", "1e300", "9223372036854775807", "123456789012345678901234567890", "1.5", "\"x\"", "[]"}) {
    const Captured captured = run({"train", GetParam().model, "--set", std::string(GetParam().key) + "=" + value});
    EXPECT_EQ(captured.status, 2) << value << captured.out;
    EXPECT_NE(captured.err.find(GetParam().key), std::string::npos) << captured.err;
    EXPECT_EQ(std::count(captured.err.begin(), captured.err.end(), '\n'), 1) << captured.err;
  }
}

constexpr const char* kLlama = "TinyLlama/TinyLlama-1.1B-Chat-v1.0";
INSTANTIATE_TEST_SUITE_P(All, Dimensions,
                         ::testing::Values(Field{kLlama, "vocab_size"}, Field{kLlama, "hidden_size"},
                                           Field{kLlama, "intermediate_size"}, Field{kLlama, "num_hidden_layers"},
                                           Field{kLlama, "num_attention_heads"}, Field{kLlama, "num_key_value_heads"},
                                           Field{kLlama, "max_position_embeddings"}, Field{"gpt2", "n_embd"},
                                           Field{"gpt2", "n_layer"}, Field{"gpt2", "n_head"},
                                           Field{"gpt2", "n_positions"}, Field{"gpt2", "vocab_size"}));

TEST(Sizes, ANumberWithoutAUnitIsNoSizeOfACard) {
  expect_error(run("train gpt2 --gpu h100-sxm-80gb --gpu-memory 80"),
               "--gpu-memory: '80' is not a size; write a number with a unit, such as 79.1GiB or 80GB");
  expect_error(run("train gpt2 --gpu h100-sxm-80gb --gpu-memory 0"),
               "--gpu-memory: a card without memory fits nothing");
  expect_error(run("train gpt2 --gpu h100-sxm-80gb --gpu-memory 80GiB --used 100GiB"),
               "--used: others cannot hold 100.00 GiB of a card that offers 80.00 GiB");
}

// A file of one measured case with these arguments.
std::string corpus_of(const std::string& args) {
  const auto path = std::filesystem::temp_directory_path() / ("ullage-cases-" + std::to_string(::getpid()) + ".jsonl");
  std::ofstream(path) << R"({"id": "a\u001b[31m", "args": [)" << args << R"(], "expect": {"peak.allocated_bytes": 1}})"
                      << "\n";
  return path.string();
}

TEST(Validate, ACaseThatAsksForNoPredictionIsNamedAndNotAnswered) {
  for (const char* args : {R"("train", "--help")", R"("train", "gpt2", "--help")"}) {
    const std::string file = corpus_of(args);
    const Captured captured = run({"validate", file});
    EXPECT_EQ(captured.status, 2);
    EXPECT_EQ(
        captured.err,
        "ullage: " + file + ": line 1: 1 of 1 cases could not be asked; the first: --help: asks for no prediction\n");
    EXPECT_EQ(captured.out.find('\x1b'), std::string::npos);
  }
}

// What the publication says, unless the case says otherwise or nothing is to be added.
TEST(Validate, SaysWhatItTookFromPublications) {
  const auto path = std::filesystem::temp_directory_path() / ("ullage-label-" + std::to_string(::getpid()) + ".jsonl");
  std::ofstream(path) << R"({"id": "a", "args": ["train", "gpt2"], "expect": {"peak.allocated_bytes": 1}, )"
                      << R"("source": "https://github.com/QwenLM/Qwen/blob/main/README.md"})"
                      << "\n";
  const Json taken = Json::parse(run({"validate", path.string(), "--json"}).out)["taken"];
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0]["args"].dump().rfind(R"(["--trainer","hf")", 0), 0U);
  EXPECT_EQ(taken[0]["kind"], "stated");
  EXPECT_NE(run({"validate", path.string()}).out.find("1 cases were asked with --trainer hf"), std::string::npos);
  EXPECT_TRUE(Json::parse(run({"validate", path.string(), "--json", "--as-written"}).out)["taken"].empty());
}

TEST(Validate, SaysWhenNoCaseIsMeant) {
  const std::string file = corpus_of(R"("train", "gpt2")");
  expect_error(run({"validate", file, "--where", "family=bert"}),
               "validate: none of the 1 cases read is meant; check --where and --confidence");
}

TEST(Validate, AsksWithAnOptionThatTheCasesDoNotName) {
  const auto peak = [](const Captured& captured) { return Json::parse(captured.out)["rows"][0]["predicted"]; };
  const std::string file = corpus_of(R"("train", "gpt2", "--seq-len", "128")");
  const auto larger =
      Json::parse(run("train gpt2 --seq-len 128 --micro-batch 64 --json").out)["peak"]["allocated_bytes"];
  EXPECT_EQ(peak(run({"validate", file, "--json", "--with", "micro_batch=64", "--with", "seq-len=64"})), larger);
  EXPECT_NE(peak(run({"validate", file, "--json"})), larger);
  expect_error(run({"validate", file, "--with", "--trainer"}),
               "--with: '--trainer' is no option; write KEY=VALUE, such as trainer=hf");
}

TEST(Text, OfTheUserDoesNotSteerTheTerminal) {
  const Captured captured = run({"train", "gpt2", "--set", "foo=\x1b[31mX\nY"});
  EXPECT_EQ(captured.status, 0);
  EXPECT_EQ(captured.out.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace ullage
