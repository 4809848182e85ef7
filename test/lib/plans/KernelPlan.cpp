//===- KernelPlan.cpp - A plan with most kernels --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

namespace dtc::runtime::testing {

namespace {

using Attributes = std::vector<std::pair<std::string, plan::Attribute>>;

class KernelPlanBuilder : public PlanBuilder {
public:
  KernelPlanBuilder() {
    axis("a", 2);
    axis("b", 2);
    axis("micro", 2, /*temporal=*/true);
    x = random("x", {4, 6});
    y = random("y", {4, 6});
    ids = input("ids", DType::I32, {4}, {{}}).buffer();
    step = input("step", DType::F32, {}, {}).buffer();
    task("kernels");
    addElementwise();
    addMovement();
    addContractions();
    addNormalizations();
    addAttention();
    addDropout();
    addIndexing();
    addCollectives();
    task("update");
    addOptimizers();
    schedule(0, 0);
    schedule(0, 1);
    schedule(1);
  }

private:
  uint32_t random(const std::string &name, const Shape &shape) {
    plan::State &s = state(name, DType::F32, shape, DimAxes(shape.size()));
    s.mutable_init()->set_kind(plan::Init::NORMAL);
    s.mutable_init()->set_scale(0.1);
    return s.buffer();
  }

  /// Calls a kernel with one new f32 buffer as its result.
  uint32_t call(const std::string &name, const std::vector<uint32_t> &inputs, const Shape &shape,
                const Attributes &attributes = {}, DType dtype = DType::F32) {
    uint32_t out = buffer(dtype, shape);
    callInto(name, inputs, {out}, attributes);
    return out;
  }
  void callInto(const std::string &name, const std::vector<uint32_t> &inputs,
                const std::vector<uint32_t> &outputs, const Attributes &attributes = {}) {
    plan::KernelCall &call = kernel(name, inputs, outputs);
    for (const auto &[key, value] : attributes)
      (*call.mutable_attributes())[key] = value;
  }

  void addElementwise() {
    for (const char *name : {"neg", "exp", "tanh", "sigmoid", "softplus", "relu", "silu"})
      call(name, {x}, {4, 6});
    call("gelu", {x}, {4, 6}, {{"approximate", stringAttribute("tanh")}});
    call("gelu_grad", {x, y}, {4, 6}, {{"approximate", stringAttribute("none")}});
    for (const char *name : {"add", "sub", "mul", "div", "maximum"})
      call(name, {x, y}, {4, 6});
    uint32_t row =
        call("reduce", {x}, {6}, {{"kind", stringAttribute("sum")}, {"dims", intsAttribute({0})}});
    call("add", {x, row}, {4, 6}, {{"rhs_dims", intsAttribute({1})}});
    uint32_t less =
        call("compare", {x, y}, {4, 6}, {{"predicate", stringAttribute("lt")}}, DType::Bool);
    call("select", {less, x, y}, {4, 6});
    call("convert", {less}, {4, 6});
  }

  void addMovement() {
    call("fill", {}, {3}, {{"value", floatAttribute(1.5)}});
    plan::Attribute data;
    data.set_data(std::string(12, '\x01'));
    call("constant", {}, {3}, {{"data", data}});
    call("copy", {x}, {24});
    call("transpose", {x}, {6, 4}, {{"permutation", intsAttribute({1, 0})}});
    uint32_t part = call("slice", {x}, {2, 3}, {{"offsets", intsAttribute({1, 2})}});
    call("pad", {part}, {4, 6}, {{"low", intsAttribute({1, 2})}, {"value", floatAttribute(0)}});
    call("concat", {x, y}, {8, 6}, {{"dim", intAttribute(0)}});
    call("broadcast", {part}, {2, 5, 3}, {{"dims", intsAttribute({0, 2})}});
    call("shard_slice", {x}, {2, 6},
         {{"dim", intAttribute(0)}, {"axes", stringsAttribute({"micro"})}});
    call("shard_offset", {}, {},
         {{"axes", stringsAttribute({"a", "b"})}, {"size", intAttribute(3)}}, DType::I32);
    call("mask_padding", {x}, {4, 6},
         {{"dim", intAttribute(0)},
          {"axes", stringsAttribute({"micro"})},
          {"size", intAttribute(7)},
          {"value", stringAttribute("lowest")}});
    callInto("accumulate", {x}, {buffer(DType::F32, {4, 6})}, {{"axis", stringAttribute("micro")}});
  }

  void addContractions() {
    call("einsum", {x, y}, {4, 4}, {{"equation", stringAttribute("ik,jk->ij")}});
    uint32_t batched = call("copy", {x}, {2, 2, 6});
    call("einsum", {batched, y}, {2, 2, 4}, {{"equation", stringAttribute("bsd,fd->bsf")}});
    call("einsum", {x, x}, {}, {{"equation", stringAttribute("ij,ij->")}});
  }

  void addNormalizations() {
    uint32_t gamma = random("gamma", {6}), beta = random("beta", {6});
    uint32_t mean = buffer(DType::F32, {4}), rstd = buffer(DType::F32, {4});
    callInto("layer_norm", {x, gamma, beta}, {buffer(DType::F32, {4, 6}), mean, rstd},
             {{"eps", floatAttribute(1e-5)}});
    callInto("layer_norm_grad", {x, gamma, mean, rstd, y},
             {buffer(DType::F32, {4, 6}), buffer(DType::F32, {6}), buffer(DType::F32, {6})});
    callInto("rms_norm", {x, gamma}, {buffer(DType::F32, {4, 6}), rstd},
             {{"eps", floatAttribute(1e-5)}});
    callInto("rms_norm_grad", {x, gamma, rstd, y},
             {buffer(DType::F32, {4, 6}), buffer(DType::F32, {6})});
    uint32_t softmax = call("softmax", {x}, {4, 6});
    call("softmax_grad", {softmax, y}, {4, 6});
  }

  void addAttention() {
    uint32_t q = random("q", {1, 3, 4, 2}), k = random("k", {1, 3, 2, 2});
    uint32_t rotated = call("rotary", {q}, {1, 3, 4, 2},
                            {{"theta", floatAttribute(1e4)}, {"inverse", boolAttribute(false)}});
    uint32_t out = buffer(DType::F32, {1, 3, 4, 2}), lse = buffer(DType::F32, {1, 4, 3});
    Attributes attributes{{"causal", boolAttribute(true)}, {"scale", floatAttribute(0.7)}};
    callInto("attention", {rotated, k, k}, {out, lse}, attributes);
    callInto("attention_grad", {rotated, k, k, out, lse, q},
             {buffer(DType::F32, {1, 3, 4, 2}), buffer(DType::F32, {1, 3, 2, 2}),
              buffer(DType::F32, {1, 3, 2, 2})},
             attributes);
  }

  void addDropout() {
    uint32_t key = buffer(DType::I32, {2});
    plan::Attribute words;
    words.set_data(std::string(8, '\x05'));
    callInto("constant", {}, {key}, {{"data", words}});
    call("dropout", {x, key}, {4, 6},
         {{"rate", floatAttribute(0.5)},
          {"op", intAttribute(1)},
          {"shape", intsAttribute({16, 6})},
          {"sharding", stringsAttribute({"a,micro", ""})}});
  }

  void addIndexing() {
    uint32_t rows = call("embedding", {y, ids}, {4, 6});
    call("embedding_grad", {ids, rows}, {4, 6});
    uint32_t picked = call("pick", {x, ids}, {4});
    call("pick_grad", {ids, picked}, {4, 6});
    uint32_t largest = call("top_k", {x}, {4, 6}, {{"k", intAttribute(2)}}, DType::Bool);
    uint32_t places = call("nonzero", {largest}, {4, 3}, {}, DType::I32);
    uint32_t tables = call("copy", {x}, {4, 3, 2});
    uint32_t found = call("embedding", {tables, places}, {4, 3, 2});
    call("embedding_grad", {places, found}, {4, 5, 2});
    uint32_t loss = buffer(DType::F32, {4}), lse = buffer(DType::F32, {4});
    callInto("cross_entropy", {x, ids}, {loss, lse});
    call("cross_entropy_grad", {x, ids, lse, loss}, {4, 6});
    uint32_t sum = buffer(DType::F32, {4});
    callInto("accumulate", {loss}, {sum}, {{"axis", stringAttribute("micro")}});
    output("loss", DType::F32, {4}, {{}}, sum);
  }

  void addOptimizers() {
    uint32_t p = random("p", {4, 6}), m = random("m", {4, 6}), v = random("v", {4, 6});
    uint32_t one = call("fill", {}, {}, {{"value", floatAttribute(1)}});
    uint32_t apply = call("fill", {}, {}, {{"value", floatAttribute(1)}}, DType::Bool);
    for (const char *name : {"adamw", "adam"})
      callInto(name, {p, x, m, v, one, step, one, apply}, {p, m, v},
               {{"beta1", floatAttribute(0.9)},
                {"beta2", floatAttribute(0.99)},
                {"eps", floatAttribute(1e-8)},
                {"weight_decay", floatAttribute(0.1)}});
    callInto("sgd", {p, x, m, one, one, apply}, {p, m},
             {{"momentum", floatAttribute(0.9)}, {"weight_decay", floatAttribute(0.1)}});
    callInto("lion", {p, x, m, one, one, apply}, {p, m},
             {{"beta1", floatAttribute(0.9)},
              {"beta2", floatAttribute(0.99)},
              {"weight_decay", floatAttribute(0.1)}});
  }

  void addCollectives() {
    uint32_t sum = call("copy", {x}, {4, 6});
    collective(plan::Collective::ALL_REDUCE, {"a", "b"}, sum, sum);
    collective(plan::Collective::ALL_GATHER, {"a"}, sum, buffer(DType::F32, {8, 6}));
    collective(plan::Collective::REDUCE_SCATTER, {"b"}, sum, buffer(DType::F32, {4, 3})).set_dim(1);
    collective(plan::Collective::ALL_TO_ALL, {"b"}, sum, buffer(DType::F32, {8, 3}))
        .set_split_dim(1);
  }

  uint32_t x = 0, y = 0, ids = 0, step = 0;
};

} // namespace

std::shared_ptr<plan::Plan> kernelPlan() { return KernelPlanBuilder().build(); }

} // namespace dtc::runtime::testing
