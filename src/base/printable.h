// Text that may be shown: names of files and values come from anywhere.
#pragma once

#include <string>

namespace ullage {

// Control characters replaced by blanks, so that they neither steer the terminal nor break the line.
inline std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

}  // namespace ullage
