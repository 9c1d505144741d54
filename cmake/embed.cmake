# cmake -D NAME= -D INPUT= -D OUTPUT= -P embed.cmake
# Writes a source file that holds INPUT as adjacent raw string literals. A literal ends at
# the end of a line where there is one, so that no character is cut in two.

set(chunk_bytes 15000)
set(open "R\"~ullage~(")
set(close ")~ullage~\"")

# Not READ with LIMIT: CMake 3.25 adds a line end where the limit falls within a line.
file(READ ${INPUT} text)
file(SIZE ${INPUT} size)
string(LENGTH "${text}" length)
if(NOT length EQUAL size)
  message(FATAL_ERROR "${INPUT}: holds a NUL byte or a carriage return; "
                      "only text with plain line ends can be embedded")
endif()

set(body "")
set(offset 0)
while(offset LESS size)
  string(SUBSTRING "${text}" ${offset} ${chunk_bytes} chunk)
  string(LENGTH "${chunk}" length)
  math(EXPR end "${offset} + ${length}")
  if(end LESS size)
    foreach(separator "\n" "," " ")
      string(FIND "${chunk}" "${separator}" cut REVERSE)
      if(cut GREATER_EQUAL 0)
        break()
      endif()
    endforeach()
    if(cut GREATER_EQUAL 0)
      math(EXPR length "${cut} + 1")
      string(SUBSTRING "${chunk}" 0 ${length} chunk)
    endif()
  endif()
  string(APPEND body "${open}${chunk}${close}\n")
  math(EXPR offset "${offset} + ${length}")
endwhile()
if(body STREQUAL "")
  set(body "\"\"")
endif()

file(WRITE ${OUTPUT}
"#include \"data/${NAME}.h\"

namespace ullage::data {

namespace {
constexpr char kText[] =
${body};
}  // namespace

std::string_view ${NAME}() { return {kText, sizeof(kText) - 1}; }

}  // namespace ullage::data
")
