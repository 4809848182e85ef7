//===- CompileAndRun.cpp - Programs from text to tensors ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/compile/CompileAndRun.h"

#include "compiler/driver/OptionTable.h"
#include "compiler/import/ImportModel.h"
#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "runtime/backends/cpu/CpuBackend.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace dtc;
using namespace dtc::test;

Compiler::Compiler() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlirContext =
      std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  mlirContext->loadAllAvailableDialects();
  mlirContext->getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(messages);
    os << diagnostic.getLocation() << ": " << diagnostic << "\n";
    return mlir::success();
  });
}

Compiler::~Compiler() = default;

mlir::OwningOpRef<mlir::ModuleOp> Compiler::parse(const std::string &text) {
  return mlir::parseSourceString<mlir::ModuleOp>(text, mlirContext.get());
}

mlir::OwningOpRef<mlir::ModuleOp> Compiler::import(const std::string &configPath, int64_t batch,
                                                   int64_t seq, ImportOptions options) {
  auto buffer = llvm::MemoryBuffer::getFile(configPath);
  if (!buffer) {
    messages += "cannot read " + configPath;
    return {};
  }
  return importText((*buffer)->getBuffer(), configPath, batch, seq, std::move(options));
}

mlir::OwningOpRef<mlir::ModuleOp> Compiler::importText(llvm::StringRef config,
                                                       const std::string &path, int64_t batch,
                                                       int64_t seq, ImportOptions options) {
  options.batch = batch;
  options.seq = seq;
  ImportLog log;
  auto module = importModel(*mlirContext, config, path, options, log);
  for (const std::string &error : log.errors)
    messages += error + "\n";
  return module;
}

std::unique_ptr<runtime::Session> Compiler::importAndOpen(const std::string &config, int64_t batch,
                                                          int64_t seq,
                                                          const CompileOptions &options,
                                                          ImportOptions import, int64_t batches) {
  auto module = importText(config, "config.json", batch, seq, std::move(import));
  return module ? open(*module, options, 1, batches) : nullptr;
}

std::shared_ptr<const plan::Plan> Compiler::importAndCompile(const std::string &config,
                                                             int64_t batch, int64_t seq,
                                                             const CompileOptions &options) {
  auto module = importText(config, "config.json", batch, seq);
  return module ? compileCopy(*module, options) : nullptr;
}

std::shared_ptr<plan::Plan> Compiler::compileCopy(mlir::ModuleOp module,
                                                  const CompileOptions &options) {
  messages.clear();
  mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
  auto plan = std::make_shared<plan::Plan>();
  if (failed(compile(*copy, options, "test", *plan)))
    return nullptr;
  // A run has its plan from a file, on the way into which nothing may be lost.
  std::string bytes = serializePlan(*plan);
  auto read = std::make_shared<plan::Plan>();
  if (!read->ParseFromString(bytes) || serializePlan(*read) != bytes) {
    messages += "the plan has other bytes after it was written and read";
    return nullptr;
  }
  return read;
}

std::unique_ptr<runtime::Session> Compiler::open(mlir::ModuleOp module,
                                                 const CompileOptions &options,
                                                 int threadsPerDevice, int64_t batches) {
  std::shared_ptr<plan::Plan> plan = compileCopy(module, options);
  if (!plan)
    return nullptr;
  runtime::SessionOptions sessionOptions;
  sessionOptions.threadsPerDevice = threadsPerDevice;
  sessionOptions.batches = batches;
  auto session = runtime::Session::create(plan, runtime::createCpuBackend(), sessionOptions);
  if (!session) {
    messages += session.error().message;
    return nullptr;
  }
  return std::move(*session);
}

void dtc::test::toDouble(mlir::ModuleOp module) {
  mlir::Type f64 = mlir::Float64Type::get(module.getContext());
  auto convert = [&](mlir::Type type) -> mlir::Type {
    auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    return tensor && tensor.getElementType().isF32() ? tensor.clone(f64) : type;
  };
  module.walk([&](mlir::Operation *op) {
    for (mlir::Value result : op->getResults())
      result.setType(convert(result.getType()));
    for (mlir::Region &region : op->getRegions())
      for (mlir::BlockArgument argument : region.getArguments())
        argument.setType(convert(argument.getType()));
    for (mlir::NamedAttribute attribute : op->getAttrs())
      if (auto elements = mlir::dyn_cast<mlir::DenseFPElementsAttr>(attribute.getValue());
          elements && elements.getElementType().isF32())
        op->setAttr(attribute.getName(), elements.mapValues(f64, [](const llvm::APFloat &value) {
          return llvm::APFloat(double(value.convertToFloat())).bitcastToAPInt();
        }));
    if (auto function = mlir::dyn_cast<mlir::func::FuncOp>(op)) {
      llvm::SmallVector<mlir::Type> inputs, results;
      for (mlir::Type type : function.getArgumentTypes())
        inputs.push_back(convert(type));
      for (mlir::Type type : function.getResultTypes())
        results.push_back(convert(type));
      function.setType(mlir::FunctionType::get(module.getContext(), inputs, results));
    }
  });
}

/// Takes "name=value" apart where it sets an option; false if it is the size of an axis.
static bool setField(llvm::StringRef part, CompileOptions &options) {
  auto [name, value] = part.split('=');
  llvm::StringRef full = llvm::StringSwitch<llvm::StringRef>(name)
                             .Case("m", "microbatches")
                             .Case("bucket", "bucket_bytes")
                             .Case("grads", "grad_reduce_dtype")
                             .Default(name);
  const Option *option = findOption(full);
  if (!option)
    return false;
  if (setOption(*option, value, options))
    llvm::report_fatal_error(llvm::Twine("a strategy of a test has '") + part +
                             "', which is no value of the option");
  return true;
}

CompileOptions dtc::test::strategy(const std::string &text) {
  CompileOptions options;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    if (part == "accumulate") {
      options.accumulates = true;
      continue;
    }
    if (part == "sp") {
      options.sequenceParallel = true;
      continue;
    }
    if (part.consume_front("shard:")) {
      options.shard.push_back(part.str());
      continue;
    }
    if (setField(part, options))
      continue;
    llvm::SmallVector<llvm::StringRef> axes;
    part.split(axes, ',', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef axis : axes) {
      auto [name, size] = axis.split('=');
      int64_t value = 0;
      if (size.getAsInteger(10, value))
        llvm::report_fatal_error(llvm::Twine("a strategy of a test has '") + axis +
                                 "', expected an axis and its size");
      options.mesh.push_back({name.str(), value});
    }
  }
  return options;
}

int64_t dtc::test::devicesOf(const CompileOptions &options) {
  int64_t devices = 1;
  for (const auto &[axis, size] : options.mesh)
    devices *= size;
  return devices;
}

int64_t dtc::test::axisSize(const CompileOptions &options, llvm::StringRef axis) {
  for (const auto &[name, size] : options.mesh)
    if (name == axis)
      return size;
  return 1;
}

double dtc::test::relativeDifference(const HostTensor &a, const HostTensor &b, double floor) {
  if (a.type != b.type)
    return INFINITY;
  double difference = 0, magnitude = floor;
  for (int64_t i = 0, n = a.type.numElements(); i < n; ++i) {
    double x = element(a, i), y = element(b, i);
    if (std::isnan(x) || std::isnan(y))
      return INFINITY;
    difference = std::max(difference, std::abs(x - y));
    magnitude = std::max(magnitude, std::abs(x));
  }
  return difference / magnitude;
}

HostTensor dtc::test::randomTensor(const TensorType &type, uint64_t seed, const std::string &name,
                                   int64_t limit) {
  std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32),
                         uint32_t(std::hash<std::string>{}(name))};
  std::mt19937_64 engine(sequence);
  HostTensor tensor(type);
  for (int64_t i = 0, n = type.numElements(); i < n; ++i) {
    if (type.dtype == DType::I32)
      tensor.as<int32_t>()[i] = int32_t(engine() % uint64_t(limit));
    else if (type.dtype == DType::Bool)
      tensor.as<uint8_t>()[i] = engine() & 1;
    else
      setElement(tensor, i, std::uniform_real_distribution<double>(-1, 1)(engine));
  }
  return tensor;
}

MaybeError dtc::test::setRandomInputs(runtime::Session &session, uint64_t seed) {
  for (const plan::Input *each : distinctInputs(session.plan())) {
    const plan::Input &input = *each;
    if (input.role() != plan::Input::DATA)
      continue;
    TensorType type{static_cast<DType>(input.dtype()),
                    {input.shape().begin(), input.shape().end()}};
    int64_t limit = input.index_limit() > 0 ? input.index_limit() : 2;
    if (auto problem =
            session.setInput(input.name(), randomTensor(type, seed, input.name(), limit)))
      return problem;
  }
  return {};
}
