#include "report/pickle.h"

#include <cstring>
#include <limits>

namespace ullage::report {

void Pickle::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
}

void Pickle::integer(std::int64_t value) {
  if (value >= 0 && value <= 0xFF) {
    out_ += 'K';
    little_endian(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value <= 0xFFFF) {
    out_ += 'M';
    little_endian(static_cast<std::uint64_t>(value), 2);
  } else if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
    out_ += 'J';
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    out_ += "\x8a\x08";  // eight bytes, the highest bit is the sign
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
}

void Pickle::real(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  out_ += 'G';
  for (int i = 7; i >= 0; --i) out_ += static_cast<char>(bits >> (8 * i));
}

void Pickle::text(std::string_view value) {
  if (const auto found = texts_.find(value); found != texts_.end()) return recall(found->second);
  if (value.size() <= 0xFF) {
    out_ += '\x8c';
    little_endian(value.size(), 1);
  } else {
    out_ += 'X';
    little_endian(value.size(), 4);
  }
  out_ += value;
  texts_.emplace(value, remember());
}

std::uint32_t Pickle::remember() {
  out_ += '\x94';
  return remembered_++;
}

void Pickle::recall(std::uint32_t number) {
  out_ += number <= 0xFF ? 'h' : 'j';
  little_endian(number, number <= 0xFF ? 1 : 4);
}

}  // namespace ullage::report
