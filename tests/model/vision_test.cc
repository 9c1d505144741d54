// Expected values are those of the published functions: smart_resize of image_processing_qwen2_vl.py and
// get_vision_window_index of vision_utils.py, run on the same numbers (transformers 5.12.1).
#include "model/vision.h"

#include <gtest/gtest.h>

namespace ullage::model {
namespace {

Vision tower(std::int64_t patch, std::int64_t least, std::int64_t most) {
  Vision out;
  out.patch = patch;
  out.merge = 2;
  out.least_pixels = least;
  out.most_pixels = most;
  return out;
}

TEST(Vision, ImagesAreResizedAsTheProcessorDoes) {
  struct Row {
    std::int64_t side;
    std::int64_t by_fourteen;
    std::int64_t by_sixteen;
  };
  constexpr Row kRows[] = {{1, 56, 256},       {13, 56, 256},      {42, 56, 256},      {43, 56, 256},
                           {56, 56, 256},      {70, 56, 256},      {98, 112, 256},     {126, 112, 256},
                           {154, 168, 256},    {210, 224, 256},    {336, 336, 320},    {447, 448, 448},
                           {448, 448, 448},    {462, 448, 448},    {500, 504, 512},    {1000, 1008, 992},
                           {1023, 1036, 1024}, {3584, 3584, 3584}, {3600, 3584, 3584}, {5000, 3556, 4096},
                           {20000, 3556, 4096}};
  const Vision fourteen = tower(14, 56 * 56, 3584 * 3584);
  const Vision sixteen = tower(16, 256 * 256, 4096 * 4096);
  for (const Row& row : kRows) {
    EXPECT_EQ(resized_side(fourteen, row.side, 0), row.by_fourteen) << row.side;
    EXPECT_EQ(resized_side(sixteen, row.side, 0), row.by_sixteen) << row.side;
  }
  EXPECT_EQ(resized_side(fourteen, 448, 602112), 448);
  EXPECT_EQ(resized_side(fourteen, 1000, 602112), 756);
  EXPECT_EQ(resized_side(fourteen, 1600, 602112), 756);
}

TEST(Vision, WindowsHoldWhatIsLeftAtTheEdges) {
  Vision vision = tower(14, 56 * 56, 3584 * 3584);
  vision.window = 4;
  using Lengths = std::vector<std::int64_t>;
  EXPECT_EQ(windows_of_image(vision, 4).patches, Lengths{16});
  EXPECT_EQ(windows_of_image(vision, 6).patches, Lengths{36});
  EXPECT_EQ(windows_of_image(vision, 8).patches, Lengths{64});
  EXPECT_EQ(windows_of_image(vision, 16).patches, (Lengths{64, 64, 64, 64}));
  EXPECT_EQ(windows_of_image(vision, 18).patches, (Lengths{64, 64, 16, 64, 64, 16, 16, 16, 4}));
  EXPECT_EQ(windows_of_image(vision, 30).patches,
            (Lengths{64, 64, 64, 48, 64, 64, 64, 48, 64, 64, 64, 48, 48, 48, 48, 36}));
  // An image that fills its windows is padded by a whole row and column of them.
  EXPECT_EQ(windows_of_image(vision, 16).counted, 9);
  EXPECT_EQ(windows_of_image(vision, 18).counted, 9);
}

TEST(Vision, AFixedImageStaysAsItIsAndMayKeepItsClass) {
  Vision vision;
  vision.patch = 14;
  vision.size = 336;
  vision.whole_images = true;
  EXPECT_EQ(resized_side(vision, 1000, 0), 336);
  EXPECT_EQ(tokens_of_image(vision, 336), 576);
  vision.keeps_class = true;
  EXPECT_EQ(tokens_of_image(vision, 336), 577);
}

}  // namespace
}  // namespace ullage::model
