#include "corpus/resolve.h"

namespace ullage::corpus {
namespace {

bool is_called(const Json& entry, std::string_view name) {
  if (!entry.is_object()) return false;
  for (const char* key : {"name", "device"}) {
    const auto found = entry.find(key);
    if (found != entry.end() && found->is_string() && found->get_ref<const std::string&>() == name) return true;
  }
  return false;
}

const Json* child(const Json& parent, std::string_view name) {
  if (parent.is_object()) {
    const auto found = parent.find(std::string(name));
    return found == parent.end() ? nullptr : &*found;
  }
  if (!parent.is_array()) return nullptr;
  for (const Json& entry : parent) {
    if (is_called(entry, name)) return &entry;
  }
  return nullptr;
}

}  // namespace

const Json* at_path(const Json& document, std::string_view path) {
  // Tries the shortest first word, then longer ones.
  for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
    const Json* next = child(document, path.substr(0, end));
    if (end == std::string_view::npos) return next;
    if (next == nullptr) continue;
    if (const Json* found = at_path(*next, path.substr(end + 1))) return found;
  }
}

std::optional<double> as_number(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

std::optional<double> number_at(const Json& document, std::string_view path) {
  const Json* found = at_path(document, path);
  return found != nullptr ? as_number(*found) : std::nullopt;
}

std::optional<std::string> text_at(const Json& document, std::string_view path) {
  const Json* found = at_path(document, path);
  if (found == nullptr || found->is_null()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace ullage::corpus
