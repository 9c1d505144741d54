// Placing text in columns of a terminal, where a Chinese character takes two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ullage::report {

// Columns that UTF-8 text takes in a terminal. Escape sequences must not be in it.
std::size_t display_width(std::string_view text);

std::string pad_right(std::string_view text, std::size_t width);
std::string pad_left(std::string_view text, std::size_t width);
// Cut to `width` columns with "…" (or "..." without Unicode) in place of the middle.
std::string shorten(std::string_view text, std::size_t width, bool unicode);

// A bar for `fraction` of `width` columns, in eighths with Unicode, in whole '#' without; what is not nothing shows.
std::string bar(double fraction, std::size_t width, bool unicode);

// Breaks at blanks and between wide characters; every line but the first begins with `indent` blanks.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace ullage::report
