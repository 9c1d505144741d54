#include "base/bytes.h"

#include <gtest/gtest.h>

namespace ullage {
namespace {

struct Size {
  const char* text;
  std::int64_t bytes;
};

class ReadSize : public ::testing::TestWithParam<Size> {};

TEST_P(ReadSize, IsInBytes) {
  const auto read = parse_bytes(GetParam().text, "--used");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, GetParam().bytes);
}

INSTANTIATE_TEST_SUITE_P(Table, ReadSize,
                         ::testing::Values(Size{"0", 0}, Size{"512 B", 512}, Size{"7 bytes", 7},
                                           Size{"80GB", 80'000'000'000}, Size{"80 gb", 80'000'000'000},
                                           Size{"81559 MiB", 85'520'809'984}, Size{"79.1GiB", 84'932'978'278},
                                           Size{"1.5T", 1'649'267'441'664}, Size{"2tb", 2'000'000'000'000},
                                           Size{"1k", 1024}, Size{"1KB", 1000}, Size{"1Ki", 1024}, Size{"1e3 B", 1000},
                                           Size{"0.5KiB", 512}, Size{"8000000T", 8'796'093'022'208'000'000}));

class NoSize : public ::testing::TestWithParam<const char*> {};

TEST_P(NoSize, IsAnErrorThatSaysWhatIsOne) {
  const auto read = parse_bytes(GetParam(), "--used");
  ASSERT_FALSE(read);
  EXPECT_EQ(to_string(read.error()), std::string("--used: '") + GetParam() +
                                         "' is not a size; write a number with a unit, such as 79.1GiB or 80GB");
}

INSTANTIATE_TEST_SUITE_P(Table, NoSize,
                         ::testing::Values("", "80", "1e3", "GiB", "-1GB", "nan", "inf", "1e40", "9300000T", "8XB",
                                           "1GiBs", "80 G B C"));

struct Shown {
  std::int64_t bytes;
  Unit unit;
  const char* text;
};

class ShownSize : public ::testing::TestWithParam<Shown> {};

TEST_P(ShownSize, HasAUnitThatFits) { EXPECT_EQ(format_bytes(GetParam().bytes, GetParam().unit), GetParam().text); }

INSTANTIATE_TEST_SUITE_P(Table, ShownSize,
                         ::testing::Values(Shown{17'094'934'528, Unit::gib, "15.92 GiB"},
                                           Shown{17'094'934'528, Unit::gb, "17.09 GB"},
                                           Shown{17'094'934'528, Unit::mib, "16303.0 MiB"},
                                           Shown{17'094'934'528, Unit::bytes, "17094934528 B"},
                                           Shown{0, Unit::gib, "0 B"}, Shown{512, Unit::gib, "512 B"},
                                           Shown{2048, Unit::gib, "2.00 KiB"}, Shown{2000, Unit::gb, "2.00 kB"},
                                           Shown{kMiB, Unit::gib, "1.00 MiB"}, Shown{kGiB / 2, Unit::gib, "0.50 GiB"},
                                           Shown{kGiB / 20, Unit::gib, "51.20 MiB"},
                                           Shown{-kGiB, Unit::gib, "-1.00 GiB"}));

TEST(Unit, OnlyTheFourAreKnown) {
  EXPECT_EQ(parse_unit("GiB", "--units").value(), Unit::gib);
  EXPECT_EQ(parse_unit("bytes", "--units").value(), Unit::bytes);
  EXPECT_EQ(to_string(parse_unit("gib", "--units").error()),
            "--units: 'gib' is not a unit; choose GiB, GB, MiB or bytes");
}

TEST(Arithmetic, RoundsUpAndSaturates) {
  EXPECT_EQ(round_up(0, 512), 0);
  EXPECT_EQ(round_up(1, 512), 512);
  EXPECT_EQ(round_up(512, 512), 512);
  EXPECT_EQ(round_up(513, 512), 1024);
  EXPECT_EQ(multiply_saturated(0, kMaxBytes), 0);
  EXPECT_EQ(multiply_saturated(kMaxBytes, 0), 0);
  EXPECT_EQ(multiply_saturated(std::int64_t{1} << 31, std::int64_t{1} << 31), std::int64_t{1} << 62);
  EXPECT_EQ(multiply_saturated(std::int64_t{1} << 32, std::int64_t{1} << 31), kMaxBytes);
}

}  // namespace
}  // namespace ullage
