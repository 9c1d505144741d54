// C++ against Python: lifetimes of arguments, and autograd's order. (That no expression holds two allocating calls is
// seen in the sources: rules_expressions_test.py.)
#include <gtest/gtest.h>

#include "model/modules.h"
#include "tensor/ops.h"
#include "tensor/record.h"
#include "tensor/tape.h"

namespace ullage::tensor {
namespace {

class Rules : public ::testing::Test {
 protected:
  Rules() : context_(policy()) {}

  static Policy policy() {
    Policy out = cuda_policy();
    out.granularity_bytes = 1;
    return out;
  }

  // A tensor of that many bytes, by which the events below tell it.
  Tensor bytes(std::int64_t count) { return context_.make({count}, DType::u8); }
  Tensor floats(std::int64_t count) { return context_.make({count}, DType::f32); }
  Tensor leaf(Dims sizes) {
    Tensor x = context_.make(sizes, DType::f32);
    x.impl()->leaf_requires_grad = true;
    return x;
  }

  // Births (+bytes) and deaths (-bytes) since the last question.
  std::vector<std::int64_t> events() {
    std::vector<std::int64_t> out;
    const memory::Timeline& timeline = context_.timeline();
    for (; seen_ < timeline.events.size(); ++seen_) {
      const memory::Event& event = timeline.events[seen_];
      const std::int64_t size = timeline.blocks[event.block].requested_bytes;
      if (event.kind == memory::EventKind::alloc) out.push_back(size);
      if (event.kind == memory::EventKind::free) out.push_back(-size);
    }
    return out;
  }

  // Names of the operators since the last question.
  std::vector<std::string> operators() {
    std::vector<std::string> out;
    const memory::Timeline& timeline = context_.timeline();
    for (; seen_ops_ < timeline.ops.size(); ++seen_ops_) out.emplace_back(timeline.names[timeline.ops[seen_ops_].name]);
    return out;
  }

  Context context_;
  std::size_t seen_ = 0;
  std::size_t seen_ops_ = 0;
};

using Changes = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

// --- a module call keeps its arguments, a plain function does not -------------------------------------------------

TEST_F(Rules, ACallKeepsItsArgumentsUntilItReturns) {
  const auto body = [&](Tensor x) {
    x.reset();
    return bytes(2);
  };
  const Tensor out = model::call(body, bytes(1));
  EXPECT_EQ(events(), (Changes{1, 2, -1}));
}

TEST_F(Rules, APlainFunctionLetsThemGoWhenItRebindsThem) {
  const auto body = [&](Tensor x) {
    x.reset();
    return bytes(2);
  };
  const Tensor out = body(bytes(1));
  EXPECT_EQ(events(), (Changes{1, -1, 2}));
}

TEST_F(Rules, ACallInsideOfACallKeepsThemAsLong) {
  const auto inner = [&](Tensor x) {
    x.reset();
    return bytes(3);
  };
  const auto outer = [&](Tensor x) {
    Tensor y = model::call(inner, std::move(x));
    Tensor z = bytes(4);
    return z;
  };
  const Tensor out = model::call(outer, bytes(1));
  EXPECT_EQ(events(), (Changes{1, 3, 4, -3, -1}));
}

// --- a moved argument dies when the operator returns ---------------------------------------------------------------

TEST_F(Rules, AMovedArgumentDiesWhenTheOperatorReturns) {
  Tensor x = floats(2);
  x = neg(std::move(x));
  const Tensor y = floats(3);
  EXPECT_EQ(events(), (Changes{8, 8, -8, 12}));
}

TEST_F(Rules, AnArgumentThatIsHeldLivesOn) {
  const Tensor x = floats(2);
  const Tensor y = neg(x);
  EXPECT_EQ(events(), (Changes{8, 8}));
}

TEST_F(Rules, NoOperatorFreesItsArgumentBeforeItsResultExists) {
  Tensor a = floats(2);
  Tensor b = floats(3);
  Tensor c = expand(floats(1), {3});
  Tensor sum = add(std::move(b), std::move(c));
  EXPECT_EQ(events(), (Changes{8, 12, 4, 12, -4, -12})) << "the last argument first, as Python empties its stack";
  sum.reset();
  a.reset();
  EXPECT_EQ(events(), (Changes{-12, -8}));
}

TEST_F(Rules, AViewKeepsItsBase) {
  Tensor base = floats(6);
  Tensor part = slice(std::move(base), 0, 0, 2);
  EXPECT_EQ(events(), (Changes{24}));
  part.reset();
  EXPECT_EQ(events(), (Changes{-24}));
}

// --- autograd's order ----------------------------------------------------------------------------------------------

TEST_F(Rules, ReadyNodesRunLastMadeFirst) {
  const Tensor w = leaf({4});
  const Tensor x = mul_scalar(w);
  Tensor first = silu(x);
  Tensor second = gelu(x);
  const Tensor sum = add(std::move(first), std::move(second));
  operators();
  run_backward(sum, context_.make({4}, DType::f32));
  EXPECT_EQ(operators(), (Names{"gelu_backward", "silu_backward", "add_", "mul"}));
}

TEST_F(Rules, TheOrderIsThatOfCreationNotOfTheGraph) {
  const Tensor w = leaf({4});
  const Tensor x = mul_scalar(w);
  // The second operand of the sum is older than the first.
  Tensor older = silu(x);
  Tensor younger = gelu(x);
  const Tensor sum = add(std::move(younger), std::move(older));
  operators();
  run_backward(sum, context_.make({4}, DType::f32));
  EXPECT_EQ(operators(), (Names{"gelu_backward", "silu_backward", "add_", "mul"}));
}

TEST_F(Rules, LeavesAccumulateAtOnce) {
  const Tensor w = leaf({4});
  const Tensor v = leaf({4});
  v.impl()->grad = floats(4);  // so that its accumulation shows as an operator
  Tensor older = silu(w);
  Tensor younger = gelu(v);
  const Tensor sum = add(std::move(older), std::move(younger));
  operators();
  run_backward(sum, context_.make({4}, DType::f32));
  EXPECT_EQ(operators(), (Names{"gelu_backward", "add_", "silu_backward"}));
}

TEST_F(Rules, AGradientThatNobodySharesIsStolen) {
  const Tensor w = leaf({4});
  const Tensor y = silu(w);
  const Tensor gradient = floats(4);
  operators();
  run_backward(y, gradient);
  EXPECT_EQ(operators(), Names{"silu_backward"});
  EXPECT_TRUE(w.grad());
}

TEST_F(Rules, AGradientThatIsSharedIsCloned) {
  const Tensor w = leaf({4});
  const Tensor y = add_scalar(w);
  const Tensor gradient = floats(4);
  operators();
  run_backward(y, gradient);
  EXPECT_EQ(operators(), Names{"clone"}) << "the caller still holds it";
  EXPECT_NE(&w.grad().storage(), &gradient.storage());
}

// tests/data/lab/policies.jsonl: of two leaves that get one tensor, the first copies and the second takes it.
TEST_F(Rules, OfTwoLeavesThatShareAGradientOneClones) {
  const Tensor w = leaf({4});
  const Tensor v = leaf({4});
  const Tensor sum = add(w, v);
  const Tensor scaled = mul_scalar(sum);
  operators();
  run_backward(scaled, floats(4));
  EXPECT_EQ(operators(), (Names{"mul", "clone"}));
  EXPECT_NE(&w.grad().storage(), &v.grad().storage());
}

TEST_F(Rules, AnExpandedGradientIsCloned) {
  const Tensor w = leaf({4});
  const Tensor y = sum_all(w);
  operators();
  run_backward(y);
  const Names names = operators();
  EXPECT_EQ(names.back(), "clone");
  EXPECT_TRUE(is_dense(w.grad().sizes(), w.grad().strides()));
}

TEST_F(Rules, SavedTensorsGoWithTheirNode) {
  const Tensor w = leaf({4});
  Tensor x = mul_scalar(w);
  Tensor y = silu(std::move(x));
  EXPECT_EQ(events(), (Changes{16, 16, 16})) << "what silu saved is held by its node alone";
  Tensor gradient = context_.make({4}, DType::f32);
  events();
  run_backward(y, gradient);
  // silu's result, its saved input goes; the scaled gradient, the one before it goes.
  EXPECT_EQ(events(), (Changes{16, -16, 16, -16}));
}

TEST_F(Rules, GradientsThatMeetAreAddedInPlaceOnARealCardOnly) {
  for (const bool traced : {false, true}) {
    Policy chosen = policy();
    chosen.traced = traced;
    Context context(chosen);
    Tensor w = context.make({4}, DType::f32);
    w.impl()->leaf_requires_grad = true;
    const Tensor x = mul_scalar(w);
    Tensor first = silu(x);
    Tensor second = gelu(x);
    const Tensor sum = add(std::move(first), std::move(second));
    const std::size_t before = context.timeline().ops.size();
    run_backward(sum, context.make({4}, DType::f32));
    EXPECT_EQ(context.timeline().names[context.timeline().ops[before + 2].name], traced ? "add" : "add_");
  }
}

}  // namespace
}  // namespace ullage::tensor
