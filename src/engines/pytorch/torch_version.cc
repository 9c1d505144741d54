#include "engines/pytorch/torch_version.h"

#include <iterator>

#include "engines/pytorch/loss_version.h"

namespace ullage::engines::pytorch {
namespace {

struct Release {
  std::int32_t month;
  TorchVersion version;
};

// github.com/pytorch/pytorch/releases
constexpr Release kReleases[] = {
    {202303, {2, 0}}, {202310, {2, 1}}, {202401, {2, 2}}, {202404, {2, 3}}, {202407, {2, 4}},
    {202410, {2, 5}}, {202501, {2, 6}}, {202504, {2, 7}}, {202508, {2, 8}},
};

}  // namespace

std::optional<TorchVersion> parse_torch_version(std::string_view text) {
  const auto read = parse_version(text);
  if (!read) return std::nullopt;
  return TorchVersion{read->major, read->minor};
}

std::optional<TorchVersion> torch_of_month(std::int32_t month) {
  std::optional<TorchVersion> found;
  for (const Release& release : kReleases) {
    if (release.month <= month) found = release.version;
  }
  if (found == kReleases[std::size(kReleases) - 1].version) return std::nullopt;
  return found;
}

bool keeps_denominators(TorchVersion version) { return version < TorchVersion{2, 1}; }

bool groups_in_hash_map(TorchVersion version) { return version >= TorchVersion{2, 1}; }

bool trainer_takes_fused(TorchVersion version) { return version >= TorchVersion{2, 8}; }

}  // namespace ullage::engines::pytorch
