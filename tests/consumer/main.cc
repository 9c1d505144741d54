// Somebody else's program on the installed package: it compiles, links and answers.
#include <cstdio>

#include "base/bytes.h"

int main() {
  const auto bytes = ullage::parse_bytes("1.5KiB", "consumer");
  std::puts(ullage::format_bytes(bytes.value_or(0)).c_str());
  return bytes == 1536 ? 0 : 1;
}
