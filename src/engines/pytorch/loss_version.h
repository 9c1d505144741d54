// How the releases of transformers make the loss of the next token. All else is modelled as of the newest.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "engines/pytorch/options.h"

namespace ullage::engines::pytorch {

// The release whose code is modelled throughout.
inline constexpr std::string_view kTransformers = "5.12";

struct TransformersVersion {
  std::int32_t major = 0;
  std::int32_t minor = 0;
  auto operator<=>(const TransformersVersion&) const = default;
};

// "4.46", "4.46.1"; nothing: that is no version.
std::optional<TransformersVersion> parse_version(std::string_view text);
std::string to_string(TransformersVersion version);

// Nothing: unknown, because the family came later, or its loss is of another kind.
std::optional<LossForm> loss_form_of(std::string_view family, TransformersVersion version);

// The newest release that people could run in that month (202410); nothing: older than all that are known.
std::optional<TransformersVersion> release_of_month(std::int32_t month);

}  // namespace ullage::engines::pytorch
