// The networks of torchvision, written down once: modules in the order in which torchvision registers and runs them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/image_writer.h"

namespace ullage::model {

// The network of that name, its parameters and buffers added through `writer`; nothing when the name is not known.
std::optional<ImageModule> write_network(ImageWriter& writer, std::string_view arch, std::int64_t classes);

// Names of all networks, in a fixed order.
std::vector<std::string_view> network_names();

}  // namespace ullage::model
