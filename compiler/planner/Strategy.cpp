//===- Strategy.cpp - Reading and writing parallel strategies -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Strategy.h"

#include "compiler/driver/OptionTable.h"
#include "compiler/passes/sharding/ArgumentDims.h"
#include "compiler/passes/sharding/LogicalAxes.h"
#include "compiler/planner/SearchSpace.h"
#include "simulator/cluster/ClusterText.h"
#include "support/MappedFile.h"
#include "support/MeshAxes.h"
#include "support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <fmt/format.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/reflection.h>
#include <google/protobuf/text_format.h>
#include <memory>

using namespace dtc;

//===----------------------------------------------------------------------===//
// The schema
//===----------------------------------------------------------------------===//

namespace {

namespace proto = google::protobuf;

/// The message Strategy, made from the table of options: a field for each option of a strategy, of
/// the same name. Protobuf reads and writes its text.
class StrategySchema {
public:
  static const StrategySchema &get() {
    static const StrategySchema schema;
    return schema;
  }

  std::unique_ptr<proto::Message> createMessage() const {
    return std::unique_ptr<proto::Message>(factory.GetPrototype(strategy)->New());
  }
  const proto::FieldDescriptor *field(llvm::StringRef name) const {
    return strategy->FindFieldByName(name.str());
  }

private:
  using Type = proto::FieldDescriptorProto;

  StrategySchema() {
    proto::FileDescriptorProto file;
    file.set_name("strategy.proto");
    file.set_package("dtc.strategy");
    proto::DescriptorProto *axis = file.add_message_type();
    axis->set_name("Axis");
    addField(*axis, "name", Type::TYPE_STRING);
    addField(*axis, "size", Type::TYPE_INT64);
    proto::DescriptorProto *link = file.add_message_type();
    link->set_name("Link");
    addField(*link, "axis", Type::TYPE_STRING);
    addField(*link, "bandwidth", Type::TYPE_DOUBLE);
    addField(*link, "latency", Type::TYPE_DOUBLE);
    proto::DescriptorProto *message = file.add_message_type();
    message->set_name("Strategy");
    for (const Option &option : getOptions())
      if (option.isStrategy)
        std::visit([&](auto member) { addOption(*message, option, CompileOptions().*member); },
                   option.member);
    strategy = pool.BuildFile(file)->FindMessageTypeByName("Strategy");
  }

  static Type &addField(proto::DescriptorProto &message, llvm::StringRef name, Type::Type type,
                        bool isRepeated = false) {
    Type *field = message.add_field();
    field->set_name(name.str());
    field->set_number(message.field_size());
    field->set_type(type);
    field->set_label(isRepeated ? Type::LABEL_REPEATED : Type::LABEL_OPTIONAL);
    return *field;
  }

  template <typename T>
  static void addOption(proto::DescriptorProto &message, const Option &option, const T &) {
    if constexpr (std::is_same_v<T, bool>)
      addField(message, option.name, Type::TYPE_BOOL);
    else if constexpr (std::is_same_v<T, int64_t>)
      addField(message, option.name, Type::TYPE_INT64);
    else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>)
      addField(message, option.name, Type::TYPE_DOUBLE);
    else if constexpr (std::is_same_v<T, MeshSizes>)
      addField(message, option.name, Type::TYPE_MESSAGE, true).set_type_name(".dtc.strategy.Axis");
    else if constexpr (std::is_same_v<T, LinkSpeeds>)
      addField(message, option.name, Type::TYPE_MESSAGE, true).set_type_name(".dtc.strategy.Link");
    else // words, and lists of texts
      addField(message, option.name, Type::TYPE_STRING,
               std::is_same_v<T, std::vector<std::string>>);
  }

  proto::DescriptorPool pool;
  mutable proto::DynamicMessageFactory factory;
  const proto::Descriptor *strategy = nullptr;
};

/// A message with the fields of one that is repeated or the whole.
class Fields {
public:
  explicit Fields(proto::Message &message)
      : message(message), reflection(*message.GetReflection()),
        descriptor(*message.GetDescriptor()) {}

  const proto::FieldDescriptor *find(const char *name) const {
    return descriptor.FindFieldByName(name);
  }
  std::string text(const char *name) const { return reflection.GetString(message, find(name)); }
  int64_t number(const char *name) const { return reflection.GetInt64(message, find(name)); }
  double real(const char *name) const { return reflection.GetDouble(message, find(name)); }
  Fields &set(const char *name, const std::string &value) {
    reflection.SetString(&message, find(name), value);
    return *this;
  }
  Fields &set(const char *name, int64_t value) {
    reflection.SetInt64(&message, find(name), value);
    return *this;
  }
  Fields &set(const char *name, double value) {
    reflection.SetDouble(&message, find(name), value);
    return *this;
  }

private:
  proto::Message &message;
  const proto::Reflection &reflection;
  const proto::Descriptor &descriptor;
};

//===----------------------------------------------------------------------===//
// To and from options
//===----------------------------------------------------------------------===//

/// Writes the value of one option into its field.
struct FieldWriter {
  proto::Message &message;
  const Option &option;
  const CompileOptions &options;

  const proto::Reflection &reflection() const { return *message.GetReflection(); }
  const proto::FieldDescriptor *field() const { return StrategySchema::get().field(option.name); }

  void operator()(bool value) const { reflection().SetBool(&message, field(), value); }
  void operator()(int64_t value) const { reflection().SetInt64(&message, field(), value); }
  void operator()(double value) const { reflection().SetDouble(&message, field(), value); }
  void operator()(const std::optional<double> &value) const {
    if (value)
      (*this)(*value);
  }
  void operator()(const std::vector<std::string> &value) const {
    for (const std::string &element : value)
      reflection().AddString(&message, field(), element);
  }
  void operator()(const MeshSizes &value) const {
    for (const auto &[name, size] : value)
      Fields(*reflection().AddMessage(&message, field())).set("name", name).set("size", size);
  }
  void operator()(const LinkSpeeds &value) const {
    for (const auto &[axis, speed] : value)
      Fields(*reflection().AddMessage(&message, field()))
          .set("axis", axis)
          .set("bandwidth", speed.first)
          .set("latency", speed.second);
  }
  template <typename Word> void operator()(const Word &) const {
    reflection().SetString(&message, field(), formatOption(option, options));
  }
};

static constexpr int64_t kMostDevices = int64_t(1) << 31;

/// Reads one option from its field, or gives it its default.
struct FieldReader {
  proto::Message &message;
  const Option &option;
  CompileOptions &options;

  const proto::Reflection &reflection() const { return *message.GetReflection(); }
  const proto::FieldDescriptor *field() const { return StrategySchema::get().field(option.name); }
  bool isGiven() const { return reflection().HasField(message, field()); }

  MaybeError operator()(bool CompileOptions::*member) const {
    return read(member, [&] { return reflection().GetBool(message, field()); });
  }
  MaybeError operator()(int64_t CompileOptions::*member) const {
    return read(member, [&] { return reflection().GetInt64(message, field()); });
  }
  MaybeError operator()(double CompileOptions::*member) const {
    return read(member, [&] { return reflection().GetDouble(message, field()); });
  }
  MaybeError operator()(std::optional<double> CompileOptions::*member) const {
    return read(member, [&] { return reflection().GetDouble(message, field()); });
  }
  MaybeError operator()(std::vector<std::string> CompileOptions::*member) const {
    auto values = reflection().GetRepeatedFieldRef<std::string>(message, field());
    (options.*member).assign(values.begin(), values.end());
    return std::nullopt;
  }
  MaybeError operator()(MeshSizes CompileOptions::*member) const;
  MaybeError operator()(LinkSpeeds CompileOptions::*member) const;
  template <typename Word> MaybeError operator()(Word CompileOptions::*member) const {
    options.*member = CompileOptions().*member;
    if (!isGiven())
      return std::nullopt;
    return setOption(option, reflection().GetString(message, field()), options);
  }

private:
  template <typename T, typename Get> MaybeError read(T CompileOptions::*member, Get get) const {
    options.*member = CompileOptions().*member;
    if (isGiven())
      options.*member = get();
    return checkOption(option, options);
  }
};

MaybeError FieldReader::operator()(MeshSizes CompileOptions::*member) const {
  MeshSizes &mesh = options.*member;
  mesh.clear();
  int64_t devices = 1;
  for (int i = 0; i < reflection().FieldSize(message, field()); ++i) {
    Fields axis(*reflection().MutableRepeatedMessage(&message, field(), i));
    std::string name = axis.text("name");
    int64_t size = axis.number("size");
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    if (name.empty() || !llvm::all_of(name, isWord) || name == kMicrobatchAxis)
      return Error{
          fmt::format("mesh[{}].name is \"{}\", expected letters, digits and _, and another "
                      "name than {}",
                      i, name, kMicrobatchAxis)};
    if (options.hasAxis(name))
      return Error{fmt::format("mesh[{}].name is \"{}\", as of an axis before it", i, name)};
    if (size < 1 || size > kMostDevices)
      return Error{fmt::format("mesh[{}].size is {}, expected 1 to {}", i, size, kMostDevices)};
    if (size > kMostDevices / devices)
      return Error{fmt::format("mesh has more than {} devices; expected fewer", kMostDevices)};
    devices *= size;
    mesh.emplace_back(name, size);
  }
  return std::nullopt;
}

MaybeError FieldReader::operator()(LinkSpeeds CompileOptions::*member) const {
  LinkSpeeds &links = options.*member;
  links.clear();
  for (int i = 0; i < reflection().FieldSize(message, field()); ++i) {
    Fields link(*reflection().MutableRepeatedMessage(&message, field(), i));
    std::string axis = link.text("axis");
    double bandwidth = link.real("bandwidth"), latency = link.real("latency");
    const MeshSizes declared = meshWithExpertGroups(options);
    if (!options.hasAxis(axis) &&
        llvm::none_of(declared, [&](const auto &part) { return part.first == axis; }))
      return Error{fmt::format("link[{}].axis is \"{}\", which is no axis of the mesh", i, axis)};
    if (!(bandwidth > 0) || !std::isfinite(bandwidth))
      return Error{fmt::format("link[{}].bandwidth is {}, expected bytes a second, more than 0", i,
                               bandwidth)};
    if (!(latency >= 0) || !std::isfinite(latency))
      return Error{fmt::format("link[{}].latency is {}, expected seconds, at least 0", i, latency)};
    if (!links.try_emplace(axis, bandwidth, latency).second)
      return Error{fmt::format("link[{}].axis is \"{}\", as of a link before it", i, axis)};
  }
  return std::nullopt;
}

} // namespace

std::string dtc::formatStrategy(const CompileOptions &options) {
  std::unique_ptr<proto::Message> message = StrategySchema::get().createMessage();
  for (const Option &option : getOptions())
    if (option.isStrategy)
      std::visit(
          [&](auto member) {
            FieldWriter{*message, option, options}(options.*member);
          },
          option.member);
  std::string text;
  proto::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  printer.PrintToString(*message, &text);
  return "# A strategy of dtc-compile. Change what you like and give it back with --strategy.\n" +
         text;
}

MaybeError dtc::parseStrategy(const std::string &text, CompileOptions &options) {
  std::unique_ptr<proto::Message> message = StrategySchema::get().createMessage();
  if (MaybeError error = parseMessageText(text, "strategy (docs/planning.md)", *message))
    return error;
  MaybeError error;
  for (const Option &option : getOptions())
    if (option.isStrategy && !error)
      error = std::visit(FieldReader{*message, option, options}, option.member);
  if (!error)
    error = findConflict(options, OptionSpelling::Field, MeshSource::Options);
  if (error)
    error->message = printable(error->message); // it quotes the text
  return error;
}

MaybeError dtc::readStrategy(const std::string &path, CompileOptions &options) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  std::string text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  if (MaybeError error = parseStrategy(text, options))
    return error->inContext(path);
  return std::nullopt;
}

/// The axes of the mesh that split the batch. Where the model does not name it, these are the axes
/// that are given for the first dimension of an input.
static std::vector<std::string> batchAxes(const CompileOptions &options,
                                          const ModelProperties &traits) {
  std::vector<std::string> axes, keys = traits.batchDims;
  if (keys.empty()) {
    for (const MeshAxisInfo &axis : meshAxes())
      if (axis.splitsBatch)
        axes.emplace_back(axis.name);
    keys = {kBatchAxisName.str()};
  }
  for (llvm::StringRef entry : options.shard)
    if (auto [name, number] = entry.split('=').first.rsplit('#');
        llvm::any_of(keys, [&](llvm::StringRef key) {
          return key == entry.split('=').first ||
                 (number == "0" && key.ends_with("#0") && matchesArgument(name, key.drop_back(2)));
        })) {
      entry = entry.split('=').second.split('@').first;
      llvm::SmallVector<llvm::StringRef> parts;
      entry.split(parts, '+', -1, /*KeepEmpty=*/false);
      axes.assign(parts.begin(), parts.end());
    }
  return axes;
}

MaybeError dtc::checkStrategy(const CompileOptions &options, mlir::ModuleOp model,
                              const cluster::Cluster *cluster) {
  ModelProperties traits = findProperties(model, 0);
  int64_t devices = 1, stages = 1, parts = 1;
  std::vector<std::string> splitBatch = batchAxes(options, traits);
  for (const auto &[name, size] : options.mesh) {
    devices *= size;
    if (name == kPipelineAxis)
      stages = size * std::max<int64_t>(options.chunks, 1);
    if (llvm::is_contained(splitBatch, name))
      parts *= size;
  }
  if (cluster && devices > countDevices(*cluster))
    return Error{fmt::format("mesh has {} devices, the cluster \"{}\" has {}", devices,
                             cluster->name(), countDevices(*cluster))};
  // A dimension that is not divided is padded; parts without a sample make no sense.
  if (traits.hasBatch && parts > traits.batch)
    return Error{fmt::format("mesh splits the batch into {} parts, but the model has {} samples; "
                             "choose a smaller {}, or import the model with a larger --batch",
                             parts, traits.batch, llvm::join(splitBatch, " or "))};
  if (traits.hasBatch && parts * options.microbatches > traits.batch)
    return Error{fmt::format("microbatches is {}, but a device has {} of the {} samples; choose at "
                             "most {}, or import the model with a larger --batch",
                             options.microbatches, llvm::divideCeil(traits.batch, parts),
                             traits.batch, traits.batch / parts)};
  if (options.sequenceParallel && !traits.hasSequenceAxis)
    return Error{
        "sequence_parallel is true, but the model names no dimension \"residual_seq\" that "
        "it would split"};
  int64_t ops = 0;
  model.walk([&](mlir::Operation *) { ++ops; });
  if (stages > ops)
    return Error{fmt::format("mesh and chunks make {} stages, but the model has only {} ops to put "
                             "there",
                             stages, ops)};
  return std::nullopt;
}

std::string dtc::describeStrategy(const CompileOptions &options) {
  const CompileOptions defaults;
  std::string text;
  auto add = [&](const std::string &word) { text += (text.empty() ? "" : " ") + word; };
  bool hasPipeline = false;
  for (const auto &[name, size] : options.mesh) {
    hasPipeline |= name == kPipelineAxis && size > 1;
    if (size > 1)
      add(fmt::format("{}={}", name, size));
  }
  if (text.empty())
    add("one device");
  if (options.sequenceParallel)
    add("sp");
  if (options.contextExchange != ContextExchange::Auto)
    add(wordOf(options.contextExchange));
  if (options.contextHeads > 1)
    add(fmt::format("heads={}", options.contextHeads));
  if (options.expertGroup > 1)
    add(fmt::format("expert_group={}", options.expertGroup));
  if (options.zero > 0)
    add(fmt::format("zero={}", options.zero));
  if (!options.offload.empty())
    add("offload=" + options.offload);
  if (options.microbatches > 1)
    add(fmt::format("m={}", options.microbatches));
  if (hasPipeline)
    add(options.schedule);
  if (options.chunks > 1)
    add(fmt::format("v={}", options.chunks));
  if (options.recompute != Recompute::None)
    add("recompute=" + wordOf(options.recompute));
  if (options.bucketBytes != defaults.bucketBytes)
    add(fmt::format("bucket={}MiB", options.bucketBytes >> 20));
  std::string map;
  for (llvm::StringRef entry : options.shard) {
    // A dimension without a name is split over nothing by default.
    if (entry.split('=').second.empty() && namesArgumentDims(entry))
      continue;
    map += (map.empty() ? "" : ",") + entry.str();
  }
  if (!map.empty())
    add("shard=" + map);
  return text;
}
