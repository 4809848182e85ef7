//===- Module.cpp - The Python module dtc._native -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The package dtc gives these functions their names, defaults and documentation for users
// (python/dtc/step.py).
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "python/native/CompileModel.h"
#include "python/native/TrainSession.h"
#include "report/ExplanationReport.h"
#include "report/PlanReport.h"
#include "runtime/data/DataSource.h"
#include "runtime/train/Guarded.h"
#include "support/Printable.h"
#include "tools/dtc-run/Launchers.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <cmath>
#include <exception>

namespace nb = nanobind;
using namespace dtc;
using namespace dtc::python;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

namespace {

/// Becomes dtc.Error.
struct PythonError {
  std::string message;
};

} // namespace

/// Does the work without the lock of the interpreter, so that other threads of Python run, and
/// throws its error, or the exception that it has left to the interpreter. A Ctrl-C in the meantime
/// becomes KeyboardInterrupt when the work is done.
template <typename Work> static auto withoutLock(const Work &work) {
  auto done = [&] {
    nb::gil_scoped_release released;
    return runtime::guarded(work);
  }();
  if (PyErr_Occurred())
    throw nb::python_error();
  if constexpr (std::is_same_v<decltype(done), MaybeError>) {
    if (done)
      throw PythonError{done->message};
  } else if (!done) {
    throw PythonError{done.error().message};
  }
  if (PyErr_CheckSignals() != 0)
    throw nb::python_error();
  if constexpr (!std::is_same_v<decltype(done), MaybeError>)
    return std::move(*done);
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// The name of an element type in safetensors files; empty where these have none.
static std::string fileTypeOf(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const std::pair<Code, const char *> names[] = {
      {Code::Float, "F"}, {Code::Bfloat, "BF"}, {Code::Int, "I"}, {Code::UInt, "U"}};
  if (type.lanes != 1)
    return "";
  if (type.code == static_cast<uint8_t>(Code::Bool))
    return "BOOL";
  for (auto [code, name] : names)
    if (type.code == static_cast<uint8_t>(code))
      return fmt::format("{}{}", name, type.bits);
  return "";
}

/// The arrays of a dictionary, which `kept` holds.
static Tensors tensorsOf(const nb::dict &arrays, std::vector<Array> &kept) {
  Tensors tensors;
  for (auto [key, value] : arrays) {
    std::string name = nb::cast<std::string>(key);
    Array array;
    if (!nb::try_cast(value, array))
      throw PythonError{fmt::format(
          "\"{}\" is a {}, expected an array in the memory of the host, such as of numpy or torch",
          name, nb::cast<std::string>(nb::str(value.type().attr("__name__"))))};
    std::string type = fileTypeOf(array.dtype());
    if (type.empty())
      throw PythonError{fmt::format("\"{}\" has elements of a type that dtc does not know", name)};
    std::vector<int64_t> shape;
    for (size_t i = 0; i < array.ndim(); ++i)
      shape.push_back(static_cast<int64_t>(array.shape(i)));
    tensors[name] = {type, shape, {static_cast<const std::byte *>(array.data()), array.nbytes()}};
    kept.push_back(std::move(array));
  }
  return tensors;
}

/// The type of nanobind.
static nb::dlpack::dtype typeOf(DType type) {
  using Code = nb::dlpack::dtype_code;
  Code code = type == DType::BF16   ? Code::Bfloat
              : type == DType::Bool ? Code::Bool
              : type == DType::I32  ? Code::Int
                                    : Code::Float;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * byteWidth(type)), 1};
}

/// An array that owns the tensor's elements, for numpy.from_dlpack() and torch.from_dlpack().
static nb::object arrayOf(HostTensor tensor) {
  auto *owned = new HostTensor(std::move(tensor));
  nb::capsule owner(owned,
                    [](void *pointer) noexcept { delete static_cast<HostTensor *>(pointer); });
  std::vector<size_t> shape(owned->type.shape.begin(), owned->type.shape.end());
  return nb::cast(nb::ndarray<nb::array_api>(owned->bytes.data(), shape.size(), shape.data(), owner,
                                             nullptr, typeOf(owned->type.dtype)));
}

//===----------------------------------------------------------------------===//
// Metrics and plans
//===----------------------------------------------------------------------===//

/// The metrics that dtc-run --metrics writes, by the same names; those of the model by "name" or
/// "name:layer".
static nb::dict dictOf(const runtime::StepMetrics &metrics) {
  nb::dict result;
  result["step"] = metrics.step;
  for (const runtime::Metric &metric : runtime::allMetrics()) {
    std::optional<double> value = metric.of(metrics);
    if (value && metric.isCount)
      result[metric.name] = static_cast<int64_t>(*value);
    else if (value)
      result[metric.name] = *value;
  }
  for (const runtime::ModelMetric &metric : metrics.ofModel) {
    std::string name = metric.of.empty() ? metric.name : metric.name + ":" + metric.of;
    if (metric.isScalar)
      result[name.c_str()] = metric.elements.front();
    else
      result[name.c_str()] = nb::cast(metric.elements);
  }
  return result;
}

namespace {

/// A plan, which does not change.
struct PlanHandle {
  std::shared_ptr<const plan::Plan> plan;
};

} // namespace

/// Tells a function of Python of a search, in the first process. False, with the exception left to
/// the interpreter, after a Ctrl-C or where the function raises.
static bool reportProgress(const nb::callable &function, const PlannerProgress &progress) {
  nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0)
    return false;
  try {
    if (launchedRank() == 0)
      function(progress.probes, progress.probesToCome, progress.simulated,
               progress.simulationsToCome, progress.bestSeconds);
  } catch (nb::python_error &error) {
    error.restore();
    return false;
  }
  return true;
}

static nb::dict compile(const CompileRequest &request, const nb::callable &progress) {
  CompiledModel compiled = withoutLock([&] {
    return compileModel(
        request, [&](const PlannerProgress &search) { return reportProgress(progress, search); });
  });
  nb::dict result;
  result["plan"] = PlanHandle{compiled.plan};
  result["warnings"] = compiled.warnings;
  result["remarks"] = compiled.remarks;
  result["on_cluster"] = printableLines(compiled.onCluster);
  result["search"] = printableLines(compiled.search);
  result["strategy"] = compiled.strategy;
  return result;
}

static void addPlan(nb::module_ &module) {
  nb::class_<PlanHandle>(module, "Plan")
      .def_static("parse",
                  [](const nb::bytes &bytes) {
                    return PlanHandle{
                        withoutLock([&] { return parsePlan(bytes.data(), bytes.size()); })};
                  })
      .def("serialize",
           [](const PlanHandle &self) {
             std::string bytes = serializePlan(*self.plan);
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("write",
           [](const PlanHandle &self, const std::string &path) {
             withoutLock([&] { return writePlan(*self.plan, path); });
           })
      .def("summary",
           [](const PlanHandle &self) {
             return printableLines(formatSummary(summarizePlan(*self.plan)));
           })
      .def("explanation",
           [](const PlanHandle &self, size_t top) {
             return printableLines(formatExplanation(explainPlan(*self.plan), top));
           })
      .def_prop_ro("inputs",
                   [](const PlanHandle &self) {
                     nb::dict types;
                     for (const runtime::DataInput &input : runtime::dataInputsOf(*self.plan))
                       types[input.name.c_str()] = input.type.str();
                     return types;
                   })
      .def_prop_ro("model", [](const PlanHandle &self) { return self.plan->model(); })
      .def_prop_ro("trains", [](const PlanHandle &self) { return trains(*self.plan); })
      .def_prop_ro("devices",
                   [](const PlanHandle &self) { return meshOf(*self.plan).numDevices(); });
  module.def(
      "compile",
      [](std::string text, std::string fileName, std::string modelName,
         std::vector<std::pair<std::string, std::string>> options, int64_t devices,
         std::string cluster, const nb::callable &progress) {
        return compile({std::move(text), std::move(fileName), std::move(modelName),
                        std::move(options), devices, launchedProcesses(), std::move(cluster)},
                       progress);
      },
      nb::arg("text"), nb::arg("file_name"), nb::arg("model_name"), nb::arg("options"),
      nb::arg("devices"), nb::arg("cluster"), nb::arg("progress"));
}

static void addSession(nb::module_ &module) {
  nb::class_<TrainSession>(module, "Session")
      .def_static(
          "open",
          [](const PlanHandle &plan, int threads, uint64_t seed, int64_t batches,
             bool givesPartOfBatch, const DeviceFlagValues &deviceFlags, const std::string &metrics,
             const std::string &tensorBoard, const std::string &address) {
            return withoutLock([&] {
              return TrainSession::open(plan.plan, {threads, seed, batches, givesPartOfBatch,
                                                    deviceFlags, metrics, tensorBoard, address});
            });
          })
      .def("close",
           [](TrainSession &self) {
             nb::gil_scoped_release released;
             self.close();
           })
      .def("load_weights",
           [](TrainSession &self, const std::string &name, const nb::dict &arrays) {
             std::vector<Array> kept;
             Tensors tensors = tensorsOf(arrays, kept);
             return withoutLock([&] { return self.loadWeights(name, tensors); });
           })
      .def("load_weights_files",
           [](TrainSession &self, const std::vector<std::string> &paths) {
             return withoutLock([&] { return self.loadWeights(paths); });
           })
      .def("step",
           [](TrainSession &self, const nb::list &batches, double learningRate) {
             std::vector<Array> kept;
             std::vector<Tensors> tensors;
             for (nb::handle batch : batches)
               tensors.push_back(tensorsOf(nb::cast<nb::dict>(batch), kept));
             return dictOf(withoutLock([&] { return self.step(tensors, learningRate); }));
           })
      .def("evaluate",
           [](TrainSession &self, const nb::dict &batch) {
             std::vector<Array> kept;
             Tensors tensors = tensorsOf(batch, kept);
             return withoutLock([&] { return self.evaluate(tensors); });
           })
      .def("weights",
           [](TrainSession &self) {
             auto tensors = withoutLock([&] { return self.weights(); });
             nb::dict result;
             for (auto &[name, tensor] : tensors)
               result[name.c_str()] = arrayOf(std::move(tensor));
             return result;
           })
      .def("save_weights",
           [](TrainSession &self, const std::string &path) {
             withoutLock([&] { return self.saveWeights(path); });
           })
      .def("save_checkpoint",
           [](TrainSession &self, const std::string &folder, int64_t keep) {
             return withoutLock([&] { return self.saveCheckpoint(folder, keep); });
           })
      .def("load_checkpoint",
           [](TrainSession &self, const std::string &path, const std::set<std::string> &allowed) {
             return withoutLock([&] { return self.loadCheckpoint(path, allowed); });
           })
      .def("meet",
           [](TrainSession &self, const std::string &call, const std::string &error) {
             withoutLock([&] { return self.meet(call, error); });
           })
      .def_prop_ro("device", &TrainSession::device)
      .def_prop_ro("process", &TrainSession::process)
      .def_prop_ro("processes", &TrainSession::numProcesses)
      .def_prop_ro("steps_done", [](TrainSession &self) {
        nb::gil_scoped_release released;
        return self.stepsDone();
      });
  module.def("check_device_flags", [](const DeviceFlagValues &flags) {
    if (Expected<DeviceSelection> options = readDeviceFlags(flags); !options)
      throw PythonError{options.error().message};
  });
  module.def("leave_processes", [](const std::string &error) {
    nb::gil_scoped_release released;
    leaveProcesses(error);
  });
}

NB_MODULE(_native, module) {
  // Objects that the interpreter still holds at its end are no leaks.
  nb::set_leak_warnings(false);
  module.attr("__version__") = DTC_VERSION;
  static nb::handle errorType =
      nb::object(nb::module_::import_("dtc.errors").attr("Error")).release();
  nb::register_exception_translator([](const std::exception_ptr &exception, void *) {
    try {
      std::rethrow_exception(exception);
    } catch (const PythonError &error) {
      PyErr_SetString(errorType.ptr(), printableLines(error.message).c_str());
    }
  });
  addPlan(module);
  addSession(module);
}
