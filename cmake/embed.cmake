# cmake -D NAME= -D INPUT= -D OUTPUT= -P embed.cmake
# Writes a source file that holds INPUT as adjacent raw string literals. A literal ends at
# the end of a line where there is one, so that no character is cut in two.

set(chunk_bytes 15000)
set(open "R\"~ullage~(")
set(close ")~ullage~\"")

file(SIZE ${INPUT} size)
set(body "")
set(offset 0)
while(offset LESS size)
  file(READ ${INPUT} chunk OFFSET ${offset} LIMIT ${chunk_bytes})
  string(LENGTH "${chunk}" length)
  if(length EQUAL 0)
    message(FATAL_ERROR "${INPUT}: a NUL byte at offset ${offset}; only text can be embedded")
  endif()
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
