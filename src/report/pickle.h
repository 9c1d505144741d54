// Writing Python objects in pickle's protocol 4, with the opcodes that PyTorch's snapshots have.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ullage::report {

// Source: Python's Lib/pickletools.py. Texts are remembered and written once.
class Pickle {
 public:
  Pickle() { out_ = "\x80\x04"; }

  void integer(std::int64_t value);
  void real(double value);
  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
  void text(std::string_view value);
  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }
  void begin_list() { out_ += "]("; }
  void end_list() { out_ += 'e'; }
  void pair() { out_ += '\x86'; }  // of the two values before
  // A dict or list that was ended just now, to be put anywhere again by recall().
  std::uint32_t remember();
  void recall(std::uint32_t number);

  std::string take() {
    out_ += '.';
    return std::move(out_);
  }

 private:
  void little_endian(std::uint64_t value, int bytes);

  std::string out_;
  std::uint32_t remembered_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> texts_;
};

}  // namespace ullage::report
