// Defines what fmt's headers declare, once for the whole library. Header-only, every source file
// would compile all of it again, which doubles the time of a build (and trebles it with sanitizers).
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
template void buffer<char>::append(const char*, const char*);

}  // namespace detail
FMT_END_NAMESPACE
