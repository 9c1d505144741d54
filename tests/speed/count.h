// Instructions of this program, called again with arguments of its own (step_driver.cc). Counts repeat on a busy
// machine, times do not.
#pragma once

#include <cstdint>
#include <string>

namespace ullage::speed {

bool is_real_build();  // optimised, without sanitizers
bool can_count();      // valgrind is installed
std::string this_program();
std::int64_t instructions(const std::string& arguments);  // -1 and a failure of the test: they could not be counted

}  // namespace ullage::speed
