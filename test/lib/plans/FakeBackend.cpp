//===- FakeBackend.cpp - A few kernels for tests --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/FakeBackend.h"

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/backends/cpu/CpuDevice.h"
#include "runtime/backends/cpu/CpuKernel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <stdexcept>
#include <thread>

namespace dtc::runtime::testing {

namespace {

using Run = std::function<void(const KernelArguments &)>;

class FakeKernel final : public cpu::CpuKernel {
public:
  explicit FakeKernel(Run body) : body(std::move(body)) {}
  void run(const cpu::CpuArguments &args) const override { body(args); }
  size_t workspaceBytesFor(int threads) const override { return static_cast<size_t>(threads) * 64; }

private:
  Run body;
};

const float *in(const KernelArguments &args, size_t i) {
  return static_cast<const float *>(args.inputs[i]);
}
float *out(const KernelArguments &args, size_t i) { return static_cast<float *>(args.outputs[i]); }

class FakeBackend final : public Backend {
public:
  std::string name() const override { return "fake"; }

  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &s) const override {
    if (isOfStepState(s))
      return real->prepare(s);
    Expected<Run> body = make(s);
    if (!body)
      return body.error();
    return std::unique_ptr<Kernel>(std::make_unique<FakeKernel>(std::move(*body)));
  }

  Expected<std::unique_ptr<Device>> openDevice(int64_t) const override {
    return cpu::createCpuDevice(1);
  }

private:
  /// Whether it works on scalars as the kernels of a step state do.
  static bool isOfStepState(const KernelSignature &s) {
    auto isScalar = [](const TensorType &type) { return type.rank() == 0; };
    bool isOne = std::all_of(s.inputs.begin(), s.inputs.end(), isScalar) &&
                 std::all_of(s.outputs.begin(), s.outputs.end(), isScalar);
    static const std::set<std::string> onScalars = {"add",     "sub",     "mul",     "fill",
                                                    "minimum", "maximum", "convert", "select"};
    return s.kernel == "pick" || (isOne && onScalars.count(s.kernel) > 0) ||
           (isOne && s.kernel == "compare" && s.inputs.size() == 2 &&
            s.inputs[0].dtype == DType::I32);
  }

  static bool isFloat(const TensorType &type) { return type.dtype == DType::F32; }
  static bool allFloat(const KernelSignature &s) {
    return std::all_of(s.inputs.begin(), s.inputs.end(), isFloat) &&
           std::all_of(s.outputs.begin(), s.outputs.end(), isFloat);
  }
  static bool hasArity(const KernelSignature &s, size_t inputs, size_t outputs) {
    return s.inputs.size() == inputs && s.outputs.size() == outputs;
  }
  template <typename T> static const T *attribute(const KernelSignature &s, const char *name) {
    auto it = s.attributes.find(name);
    return it == s.attributes.end() ? nullptr : std::get_if<T>(&it->second);
  }

  static Expected<Run> make(const KernelSignature &s) {
    const std::string &k = s.kernel;
    if (k == "test_throw" && hasArity(s, 0, 0))
      return Run([](const KernelArguments &args) {
        for (const AxisCoordinate &axis : args.position)
          if (axis.coordinate != axis.size - 1)
            return;
        throw std::runtime_error("the kernel failed");
      });
    if (k == "test_sleep" && hasArity(s, 0, 0))
      return Run([](const KernelArguments &) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      });
    if (k == "test_position" && hasArity(s, 0, 1) && s.outputs[0].dtype == DType::I32 &&
        s.outputs[0].numElements() == static_cast<int64_t>(s.mesh.size()))
      return Run([](const KernelArguments &args) {
        for (size_t i = 0; i < args.position.size(); ++i)
          static_cast<int32_t *>(args.outputs[0])[i] =
              static_cast<int32_t>(args.position[i].coordinate);
      });
    if (k == "convert" && hasArity(s, 1, 1) && s.inputs[0].dtype == DType::I32 &&
        isFloat(s.outputs[0]) && s.inputs[0].shape == s.outputs[0].shape)
      return Run([n = s.inputs[0].numElements()](const KernelArguments &args) {
        std::copy_n(static_cast<const int32_t *>(args.inputs[0]), n, out(args, 0));
      });
    if (k == "shard_slice" && hasArity(s, 1, 1))
      return makeShardSlice(s);
    if (k == "fill" && hasArity(s, 0, 1) && attribute<double>(s, "value") &&
        s.outputs[0].dtype == DType::Bool)
      return Run([n = s.outputs[0].numElements(),
                  value = *attribute<double>(s, "value") != 0](const KernelArguments &args) {
        std::fill_n(static_cast<uint8_t *>(args.outputs[0]), n, value);
      });
    if (k == "compare" && hasArity(s, 2, 1) && isFloat(s.inputs[0]) && s.inputs[0] == s.inputs[1] &&
        s.outputs[0].dtype == DType::Bool && s.outputs[0].shape == s.inputs[0].shape &&
        attribute<std::string>(s, "predicate") && *attribute<std::string>(s, "predicate") == "le")
      return Run([n = s.outputs[0].numElements()](const KernelArguments &args) {
        for (int64_t i = 0; i < n; ++i)
          static_cast<uint8_t *>(args.outputs[0])[i] = in(args, 0)[i] <= in(args, 1)[i];
      });
    if (k == "sgd")
      return makeSgd(s);
    if (k == "fill" && hasArity(s, 0, 1) && attribute<double>(s, "value") && allFloat(s))
      return Run([n = s.outputs[0].numElements(),
                  value = *attribute<double>(s, "value")](const KernelArguments &args) {
        std::fill_n(out(args, 0), n, static_cast<float>(value));
      });
    if (allFloat(s))
      return makeFloat(s);
    return Error{"the fake backend does not take this call of " + k};
  }

  static Expected<Run> makeFloat(const KernelSignature &s) {
    const std::string &k = s.kernel;
    if (s.outputs.empty())
      return Error{"the fake backend does not take this call of " + k};
    int64_t n = s.outputs[0].numElements();
    bool sameShapes = std::all_of(s.inputs.begin(), s.inputs.end(),
                                  [&](const TensorType &t) { return t == s.outputs[0]; });
    if (k == "copy" && hasArity(s, 1, 1) && s.inputs[0].numElements() == n)
      return Run([n](const KernelArguments &args) { std::copy_n(in(args, 0), n, out(args, 0)); });
    if (k == "sqrt" && hasArity(s, 1, 1) && sameShapes)
      return Run([n](const KernelArguments &args) {
        for (int64_t i = 0; i < n; ++i)
          out(args, 0)[i] = std::sqrt(in(args, 0)[i]);
      });
    if ((k == "add" || k == "mul") && hasArity(s, 2, 1) && sameShapes)
      return Run([n, add = k == "add"](const KernelArguments &args) {
        for (int64_t i = 0; i < n; ++i) {
          float a = in(args, 0)[i], b = in(args, 1)[i];
          out(args, 0)[i] = add ? a + b : a * b;
        }
      });
    if (k == "reduce" && hasArity(s, 1, 1) && s.outputs[0].rank() == 0)
      return Run([n = s.inputs[0].numElements()](const KernelArguments &args) {
        float sum = 0;
        for (int64_t i = 0; i < n; ++i)
          sum += in(args, 0)[i];
        *out(args, 0) = sum;
      });
    if (k == "accumulate" && hasArity(s, 1, 1) && sameShapes && attribute<std::string>(s, "axis"))
      return Run([n, axis = *attribute<std::string>(s, "axis")](const KernelArguments &args) {
        bool first = true;
        for (const AxisCoordinate &position : args.position)
          if (position.name == axis)
            first = position.coordinate == 0;
        for (int64_t i = 0; i < n; ++i)
          out(args, 0)[i] = first ? in(args, 0)[i] : out(args, 0)[i] + in(args, 0)[i];
      });
    return Error{"the fake backend does not take this call of " + k};
  }

  static Expected<Run> makeSgd(const KernelSignature &s) {
    bool valid = hasArity(s, 6, 2) && isFloat(s.inputs[0]) && s.inputs[0] == s.inputs[1] &&
                 s.inputs[0] == s.inputs[2] && s.inputs[3].rank() == 0 && s.inputs[4].rank() == 0 &&
                 s.inputs[5] == TensorType{DType::Bool, {}} && s.outputs[0] == s.inputs[0] &&
                 s.outputs[1] == s.inputs[0] && attribute<double>(s, "momentum") &&
                 attribute<double>(s, "weight_decay");
    if (!valid)
      return Error{"the fake backend does not take this call of sgd"};
    auto momentum = static_cast<float>(*attribute<double>(s, "momentum"));
    auto decay = static_cast<float>(*attribute<double>(s, "weight_decay"));
    return Run([n = s.inputs[0].numElements(), momentum, decay](const KernelArguments &args) {
      if (*static_cast<const uint8_t *>(args.inputs[5]) == 0) {
        for (size_t i : {0, 1})
          std::memmove(args.outputs[i], args.inputs[2 * i], static_cast<size_t>(n) * sizeof(float));
        return;
      }
      for (int64_t i = 0; i < n; ++i) {
        float p = in(args, 0)[i];
        float gradient = in(args, 1)[i] * *in(args, 4) + decay * p;
        float m = momentum * in(args, 2)[i] + gradient;
        out(args, 0)[i] = p - *in(args, 3) * m;
        out(args, 1)[i] = m;
      }
    });
  }

  /// Blocks of the first dimension over one axis.
  static Expected<Run> makeShardSlice(const KernelSignature &s) {
    const auto *dim = attribute<int64_t>(s, "dim");
    const auto *axes = attribute<std::vector<std::string>>(s, "axes");
    if (!dim || *dim != 0 || !axes || axes->size() != 1 || s.inputs[0].rank() == 0 ||
        s.inputs[0].dtype != s.outputs[0].dtype)
      return Error{"the fake backend does not take this call of shard_slice"};
    for (const AxisCoordinate &axis : s.mesh) {
      TensorType block = s.inputs[0];
      block.shape[0] /= axis.size;
      if (axis.name != axes->front() || s.inputs[0].shape[0] % axis.size != 0 ||
          block != s.outputs[0])
        continue;
      return Run([name = axis.name, bytes = block.numBytes()](const KernelArguments &args) {
        for (const AxisCoordinate &position : args.position)
          if (position.name == name)
            std::memcpy(args.outputs[0],
                        static_cast<const std::byte *>(args.inputs[0]) +
                            static_cast<size_t>(position.coordinate) * bytes,
                        bytes);
      });
    }
    return Error{"the fake backend does not take this call of shard_slice"};
  }

  std::unique_ptr<Backend> real = createCpuBackend(); // for the step state
};

} // namespace

std::shared_ptr<const Backend> createFakeBackend() { return std::make_shared<FakeBackend>(); }

} // namespace dtc::runtime::testing
