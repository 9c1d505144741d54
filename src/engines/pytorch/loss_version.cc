#include "engines/pytorch/loss_version.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace ullage::engines::pytorch {
namespace {

struct Row {
  std::string_view families;  // with spaces between them
  TransformersVersion since;
  LossForm form;
};

// From the history of src/transformers/models/*/modeling_*.py and src/transformers/loss/loss_utils.py: #24891 brought
// `logits = logits.float()` to Llama, #34191 the shared loss, #34147 the cast into losses of their own, #35610 and
// #35875 the shared loss to older families, #35646 the padding.
constexpr Row kRows[] = {
    {"llama", {4, 28}, LossForm::own_type},
    {"llama", {4, 31}, LossForm::kept},
    {"mistral", {4, 34}, LossForm::kept},
    {"phi mixtral", {4, 36}, LossForm::kept},
    {"qwen2", {4, 37}, LossForm::kept},
    {"gemma starcoder2", {4, 39}, LossForm::kept},
    {"olmo qwen2_moe", {4, 40}, LossForm::kept},
    {"phi3", {4, 41}, LossForm::kept},
    {"olmoe", {4, 45}, LossForm::kept},
    {"stablelm", {4, 38}, LossForm::own_type},
    {"llama mistral phi mixtral qwen2 gemma starcoder2 olmo qwen2_moe phi3 olmoe stablelm", {4, 46}, LossForm::sliced},
    {"gpt_neo", {4, 5}, LossForm::own_type},
    {"gpt2 gptj", {4, 11}, LossForm::own_type},
    {"gpt_neox bloom opt", {4, 20}, LossForm::own_type},
    {"gpt_bigcode", {4, 28}, LossForm::own_type},
    {"falcon", {4, 31}, LossForm::own_type},
    {"mpt", {4, 32}, LossForm::own_type},
    {"granite granitemoe", {4, 46}, LossForm::sliced},
    {"qwen2_vl", {4, 46}, LossForm::sliced},
    {"olmo2", {4, 47}, LossForm::sliced},
    {"cohere2", {4, 48}, LossForm::sliced},
    {"qwen2_5_vl", {4, 49}, LossForm::sliced},
    {"llama mistral phi mixtral qwen2 gemma starcoder2 olmo qwen2_moe phi3 olmoe stablelm gpt_neo gpt2 gptj gpt_neox "
     "bloom "
     "opt gpt_bigcode falcon mpt granite granitemoe olmo2 cohere2",
     {4, 49},
     LossForm::padded},
    {"gemma3_text", {4, 50}, LossForm::padded},
    {"qwen3 deepseek_v3", {4, 51}, LossForm::padded},
    {"qwen2_vl qwen2_5_vl llava glm4", {4, 52}, LossForm::padded},
    {"smollm3", {4, 53}, LossForm::padded},
};

struct Release {
  std::int32_t month;
  TransformersVersion version;
};

// The month of each minor release's first one, github.com/huggingface/transformers/releases.
constexpr Release kReleases[] = {
    {202304, {4, 28}}, {202305, {4, 29}}, {202306, {4, 30}}, {202307, {4, 31}}, {202308, {4, 32}}, {202309, {4, 33}},
    {202310, {4, 34}}, {202311, {4, 35}}, {202312, {4, 36}}, {202401, {4, 37}}, {202402, {4, 38}}, {202403, {4, 39}},
    {202404, {4, 40}}, {202405, {4, 41}}, {202406, {4, 42}}, {202407, {4, 43}}, {202408, {4, 44}}, {202409, {4, 45}},
    {202410, {4, 46}}, {202412, {4, 47}}, {202501, {4, 48}}, {202502, {4, 49}}, {202503, {4, 50}}, {202504, {4, 51}},
    {202505, {4, 52}}, {202506, {4, 53}},
};

bool names(std::string_view families, std::string_view family) {
  for (std::string_view rest = families; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == family) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::optional<TransformersVersion> parse_version(std::string_view text) {
  TransformersVersion out;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, out.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, out.minor);
  if (minor.ec != std::errc{} || (minor.ptr != end && *minor.ptr != '.')) return std::nullopt;
  if (out.major < 0 || out.minor < 0) return std::nullopt;
  return out;
}

std::string to_string(TransformersVersion version) { return fmt::format("{}.{}", version.major, version.minor); }

std::optional<LossForm> loss_form_of(std::string_view family, TransformersVersion version) {
  const TransformersVersion newest = *parse_version(kTransformers);
  if (version == newest) return LossForm::padded;
  if (version > newest) return std::nullopt;
  const Row* found = nullptr;
  for (const Row& row : kRows) {
    const bool meant = names(row.families, family) && row.since <= version;
    if (meant && (found == nullptr || found->since <= row.since)) found = &row;
  }
  return found == nullptr ? std::nullopt : std::optional(found->form);
}

std::optional<TransformersVersion> release_of_month(std::int32_t month) {
  std::optional<TransformersVersion> found;
  for (const Release& release : kReleases) {
    if (release.month <= month) found = release.version;
  }
  return found;
}

}  // namespace ullage::engines::pytorch
