// torchvision's classifiers against counts, names and limits taken from torchvision itself (tests/data/lab/README.md).
#include "model/families/torchvision.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "engines/pytorch/train.h"
#include "model/families/torchvision_networks.h"

namespace ullage::model {
namespace {

using engines::pytorch::Kernels;
using engines::pytorch::Optimizer;
using engines::pytorch::Recompute;
using engines::pytorch::Step;
using engines::pytorch::TrainOptions;

Json json_file(const std::string& name) {
  std::ifstream in(std::string(ULLAGE_TEST_DATA "/lab/") + name);
  std::ostringstream text;
  text << in.rdbuf();
  return *parse_json(text.str(), name);
}

std::vector<Json> json_lines(const std::string& name) {
  std::ifstream in(std::string(ULLAGE_TEST_DATA "/lab/") + name);
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(*parse_json(line, name));
  return lines;
}

Expected<Architecture> build(const Json& config) { return build_architecture(config, "config"); }

Architecture network(const std::string& arch) { return *build({{"model_type", "torchvision"}, {"arch", arch}}); }

std::int64_t elements(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t linear_parameters(const Architecture& architecture, const ImageModule& module) {
  std::int64_t total = 0;
  if (module.kind == ImageModuleKind::linear) {
    for (const ParameterRef ref : {module.linear.weight, module.linear.bias}) {
      total += architecture.parameters[static_cast<std::size_t>(ref.index)].elements();
    }
  }
  for (const ImageModule& part : module.children) total += linear_parameters(architecture, part);
  return total;
}

TrainOptions one_image(Step step = Step::forward) {
  TrainOptions options;
  options.step = step;
  options.optimizer = Optimizer::none;
  options.dtype = DType::f32;
  return options;
}

// FLOPs of operators of that phase, by name.
std::map<std::string, std::int64_t> flops(const memory::Timeline& timeline, memory::Phase phase) {
  std::map<std::string, std::int64_t> out;
  for (const memory::OpRecord& op : timeline.ops) {
    if (op.phase == phase) out[std::string(timeline.names[op.name])] += op.flops;
  }
  return out;
}

class Torchvision : public ::testing::TestWithParam<Json> {};

TEST_P(Torchvision, CountsEqualTheModules) {
  const Json& facts = GetParam();
  const Architecture architecture = network(facts.at("name"));
  EXPECT_EQ(parameter_count(architecture), facts.at("parameters"));
  EXPECT_EQ(linear_parameters(architecture, architecture.image.network), facts.at("linear_parameters"));
  std::int64_t buffers = 0;
  for (const Buffer& buffer : architecture.buffers) buffers += elements(buffer.sizes);
  EXPECT_EQ(buffers, facts.at("buffers"));
}

TEST_P(Torchvision, FlopsAreTwiceTheMultiplyAccumulates) {
  const Json& facts = GetParam();
  TrainOptions options = one_image();
  options.image_size = facts.at("image_size");
  options.micro_batch = 2;
  const auto run = engines::pytorch::run_train_step(network(facts.at("name")), options);
  ASSERT_TRUE(run) << to_string(run.error());
  std::map<std::string, std::int64_t> forward = flops(run->timeline, memory::Phase::forward);
  const std::int64_t images = options.micro_batch;
  EXPECT_EQ(forward["conv2d"], 2 * images * facts.at("convolutions_multiply_accumulates").get<std::int64_t>());
  EXPECT_EQ(forward["addmm"], 2 * images * facts.at("linear_multiply_accumulates").get<std::int64_t>());
}

// Every convolution but the first has a gradient for its input and one for its weight, each as costly as the forward.
TEST_P(Torchvision, BackwardCostsTwiceTheForwardButForTheFirstConvolution) {
  const auto run = engines::pytorch::run_train_step(network(GetParam().at("name")), one_image(Step::first));
  ASSERT_TRUE(run) << to_string(run.error());
  std::map<std::string, std::int64_t> forward = flops(run->timeline, memory::Phase::forward);
  std::map<std::string, std::int64_t> backward = flops(run->timeline, memory::Phase::backward);
  std::int64_t first = 0;
  for (auto op = run->timeline.ops.rbegin(); op != run->timeline.ops.rend(); ++op) {
    if (run->timeline.names[op->name] == "conv2d") first = op->flops;
  }
  EXPECT_EQ(backward["conv2d_backward"], 2 * forward["conv2d"] - first);
  EXPECT_EQ(backward["mm"], 2 * forward["addmm"]);
}

std::vector<Json> facts() {
  const Json file = json_file("torchvision.json");
  return {file.at("models").begin(), file.at("models").end()};
}

INSTANTIATE_TEST_SUITE_P(Recorded, Torchvision, ::testing::ValuesIn(facts()),
                         [](const auto& test) { return test.param.at("name").template get<std::string>(); });

TEST(TorchvisionNetworks, AreAllThatAreRecorded) {
  std::vector<std::string> recorded;
  for (const Json& fact : facts()) recorded.push_back(fact.at("name"));
  const std::vector<std::string_view> ours = network_names();
  EXPECT_EQ(recorded, std::vector<std::string>(ours.begin(), ours.end()));
}

// From the papers and torchvision's pages, as the project's goals state them.
TEST(TorchvisionNetworks, HaveThePublishedSizes) {
  EXPECT_EQ(parameter_count(network("alexnet")), 61'100'840);
  EXPECT_EQ(linear_parameters(network("alexnet"), network("alexnet").image.network), 58'631'144);
  EXPECT_EQ(parameter_count(network("vgg16")), 138'357'544);
  EXPECT_EQ(parameter_count(network("resnet50")), 25'557'032);
  const auto macs = [](const std::string& name) {
    const auto run = engines::pytorch::run_train_step(network(name), [] {
      auto o = one_image();
      o.micro_batch = 1;
      return o;
    }());
    std::map<std::string, std::int64_t> forward = flops(run->timeline, memory::Phase::forward);
    return std::pair{forward["conv2d"] / 2, (forward["conv2d"] + forward["addmm"]) / 2};
  };
  EXPECT_EQ(macs("alexnet"), (std::pair<std::int64_t, std::int64_t>{655'566'528, 714'188'480}));
  EXPECT_EQ(macs("vgg16").second, 15'470'264'320);
  EXPECT_EQ(macs("resnet50").second, 4'089'184'256);
}

Json shape_of(const Parameter& parameter) {
  Json shape = Json::array();
  for (const Dimension& dimension : parameter.dims) shape.push_back(dimension.size());
  return shape;
}

TEST(TorchvisionNetworks, NamesShapesAndOrderAreThoseOfCheckpoints) {
  for (const Json& recorded : json_lines("torchvision-state.jsonl")) {
    const Architecture architecture = network(recorded.at("name"));
    Json parameters = Json::object();
    for_each_parameter(architecture,
                       [&](const Parameter& p, const std::string& name, int) { parameters[name] = shape_of(p); });
    EXPECT_EQ(parameters.dump(), recorded.at("parameters").dump()) << recorded.at("name");
    Json buffers = Json::object();
    for (const Buffer& buffer : architecture.buffers) buffers[buffer.name] = buffer.sizes;
    EXPECT_EQ(buffers.dump(), recorded.at("buffers").dump()) << recorded.at("name");
  }
}

TEST(TorchvisionNetworks, RefuseImagesThatPyTorchRefuses) {
  for (const Json& recorded : json_lines("torchvision-state.jsonl")) {
    const Image image = network(recorded.at("name")).image;
    for (std::int64_t batch = 1; batch <= 2; ++batch) {
      const std::int64_t smallest = recorded.at("smallest")[static_cast<std::size_t>(batch - 1)];
      EXPECT_TRUE(check_image_size(image, smallest, batch)) << image.arch << " " << smallest;
      for (std::int64_t size = 1; size < smallest; ++size) {
        EXPECT_FALSE(check_image_size(image, size, batch)) << image.arch << " " << size;
      }
    }
  }
}

TEST(TorchvisionNetworks, AnImageThatIsTooSmallIsOneClearLine) {
  TrainOptions options = one_image();
  options.image_size = 31;
  const auto run = engines::pytorch::run_train_step(network("vgg16"), options);
  ASSERT_FALSE(run);
  EXPECT_EQ(
      to_string(run.error()),
      "--image-size: 31 pixels are too few for vgg16 with one image to a micro-batch: features.30 would have nothing "
      "left to look at; expected at least 32");
  options.image_size = 32;
  const auto normed = engines::pytorch::run_train_step(network("resnet18"), options);
  ASSERT_FALSE(normed);
  EXPECT_EQ(
      to_string(normed.error()),
      "--image-size: 32 pixels are too few for resnet18 with one image to a micro-batch: layer4.0.bn1 would see a "
      "single value of each channel; expected at least 33");
  options.micro_batch = 2;
  EXPECT_TRUE(engines::pytorch::run_train_step(network("resnet18"), options));
}

TEST(TorchvisionNetworks, AnAbsurdImageIsRefusedBeforeAnythingIsComputed) {
  TrainOptions options = one_image();
  options.image_size = std::int64_t{1} << 40;
  const auto run = engines::pytorch::run_train_step(network("alexnet"), options);
  ASSERT_FALSE(run);
  EXPECT_EQ(to_string(run.error()), "--image-size: 1099511627776 pixels a side; expected at most 65536");
}

TEST(TorchvisionNetworks, OperatorsCarryTheNamesOfTheirModules) {
  const auto run = engines::pytorch::run_train_step(network("resnet18"), one_image());
  ASSERT_TRUE(run) << to_string(run.error());
  std::vector<std::string> activations;
  for (const memory::OpRecord& op : run->timeline.ops) {
    if (run->timeline.names[op.name] == "relu_") activations.emplace_back(run->timeline.names[op.module]);
  }
  const std::vector<std::string> first(activations.begin(), activations.begin() + 3);
  EXPECT_EQ(first, (std::vector<std::string>{"relu", "layer1.0.relu", "layer1.0.relu"}));
  EXPECT_EQ(activations.size(), 17U);  // one behind the first convolution, two in each of eight blocks
}

TEST(TorchvisionNetworks, RecomputeIsRefused) {
  TrainOptions options = one_image();
  options.recompute = Recompute::full;
  const auto run = engines::pytorch::run_train_step(network("resnet18"), options);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().where, "--recompute");
}

TEST(TorchvisionNetworks, TakeClassesAndImageSizeFromTheConfiguration) {
  const auto ten =
      build({{"model_type", "torchvision"}, {"arch", "resnet18"}, {"num_classes", 10}, {"image_size", 32}});
  ASSERT_TRUE(ten) << to_string(ten.error());
  EXPECT_EQ(ten->image.size, 32);
  EXPECT_EQ(ten->image.classes, 10);
  // 990 classes fewer, each with 512 weights and a bias.
  EXPECT_EQ(parameter_count(*ten), parameter_count(network("resnet18")) - 990 * 513);
}

TEST(TorchvisionNetworks, RejectWhatIsNoNetwork) {
  const auto message = [](const Json& config) {
    const auto built = build(config);
    return built ? std::string("built") : to_string(built.error());
  };
  EXPECT_EQ(message({{"model_type", "torchvision"}, {"arch", "resnet51"}}),
            "config: arch: network 'resnet51' is not modelled; did you mean resnet50, resnet101 or resnet152?");
  EXPECT_EQ(message({{"model_type", "torchvision"}}).substr(0, 60),
            std::string("config: arch: network '' is not modelled; known are alexnet, ").substr(0, 60));
  for (const Json& bad : {Json(0), Json(-1), Json(1.5), Json("ten"), Json(std::int64_t{1} << 40)}) {
    EXPECT_NE(message({{"model_type", "torchvision"}, {"arch", "alexnet"}, {"num_classes", bad}}), "built") << bad;
  }
}

// Where autograd adds gradients in real steps, and whether in place (tests/data/lab/policies.jsonl).
TEST(TorchvisionNetworks, GradientsMeetAsInRealSteps) {
  std::size_t compared = 0;
  for (const Json& fact : json_lines("policies.jsonl")) {
    const std::string name = fact.at("fact");
    const std::string arch = name.substr(0, name.rfind("_fp32"));
    const auto architecture = build({{"model_type", "torchvision"}, {"arch", arch}});
    if (!architecture) continue;
    TrainOptions options = one_image(Step::first);
    options.kernels = Kernels::cuda;
    options.micro_batch = 2;
    options.image_size = 64;
    const auto run = engines::pytorch::run_train_step(*architecture, options);
    ASSERT_TRUE(run) << to_string(run.error());
    std::vector<std::string> ours;
    for (const memory::OpRecord& op : run->timeline.ops) {
      const std::string_view added = run->timeline.names[op.name];
      if (op.phase != memory::Phase::backward) continue;
      if (added == "add_") ours.emplace_back("in place");
      if (added == "add") ours.emplace_back("new tensor");
    }
    std::vector<std::string> theirs;
    for (const Json& sum : fact.at("sums")) theirs.push_back(sum.at("how"));
    EXPECT_EQ(ours, theirs) << arch;
    ++compared;
  }
  EXPECT_EQ(compared, 4U);
}

}  // namespace
}  // namespace ullage::model
