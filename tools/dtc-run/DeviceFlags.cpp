//===- DeviceFlags.cpp - Flags of the devices of a plan -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/DeviceFlags.h"

#include <optional>

using namespace dtc;

void dtc::addDeviceFlag(CLI::App &app, DeviceSelection &options) {
  app.add_option("--device", options.device,
                 "What the plan runs on, or is measured: the CPU, GPUs (cuda), or GPUs "
                 "if there are any (auto)")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
}

void dtc::addExchangeFlags(CLI::App &app, DeviceSelection &options) {
  app.add_option(
         "--fabric", options.fabric,
         "How GPUs exchange tensors: through the memory of the hosts (local), from GPU to GPU "
         "where each device has one of its own (nccl), or nccl where that is so (auto)")
      ->check(CLI::IsMember({"local", "nccl", "auto"}))
      ->capture_default_str();
  app.add_flag("--share-gpu", options.sharesGpu,
               "Let devices share a GPU with --fabric nccl too, which takes NCCL 2.30: to test a "
               "plan on fewer GPUs than it has devices; its times say nothing of as many GPUs");
  app.add_option("--nccl-channels", options.ncclChannels,
                 "The most channels of each communicator of NCCL, where each takes memory of the "
                 "GPU and a multiprocessor (default: as many as NCCL chooses)")
      ->check(CLI::Range(1, 64));
  app.add_option_function<std::string>(
         "--cuda-graphs",
         [&options](const std::string &use) {
           options.graphs = use == "auto" ? std::optional<bool>() : use == "on";
         },
         "Whether GPUs get steps as CUDA graphs (on) or each instruction for itself (off), for "
         "debuggers; or graphs where nothing speaks against them (auto)")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->default_str("auto");
}

void dtc::addGpuFlags(CLI::App &app, DeviceSelection &options) {
  addProductFlags(app, options);
  app.add_option_function<std::string>(
         "--kernel-fusion",
         [&options](const std::string &use) { options.fusesCalls = use == "on"; },
         "Whether GPUs compute kernel calls of a plan together where they can, such as a product "
         "and the bias that is added to it (on), or each by itself (off), for debugging")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("on");
}

void dtc::addProductFlags(CLI::App &app, DeviceSelection &options) {
  app.add_option_function<std::string>(
         "--matmul-algorithms",
         [&options](const std::string &how) { options.timesProducts = how == "timed"; },
         "How GPUs choose among cuBLASLt's algorithms for each matrix product: its first proposal "
         "(first), or the fastest of its proposals, which are timed once and kept in a file "
         "(timed)")
      ->check(CLI::IsMember({"first", "timed"}))
      ->default_str("first");
  app.add_option_function<std::string>(
         "--matmul-precision",
         [&options](const std::string &use) { options.usesTf32 = use == "tf32"; },
         "How GPUs read the f32 operands of matrix products: as they are (f32), or rounded to the "
         "10 bits of mantissa that tensor cores multiply much faster (tf32); sums are f32 in both")
      ->check(CLI::IsMember({"f32", "tf32"}))
      ->default_str("f32");
  app.add_option_function<std::string>(
         "--cudnn",
         [&options](const std::string &use) {
           using Cudnn = DeviceSelection::Cudnn;
           options.cudnn = use == "on" ? Cudnn::On : use == "off" ? Cudnn::Off : Cudnn::Auto;
         },
         "Whether GPUs compute attention by cuDNN (on), or by kernels of dtc (off), or by cuDNN "
         "where it is found (auto); what cuDNN does not have is computed by kernels of dtc")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->default_str("auto");
}
