//===- MpiMessagesTest.cpp - Messages over MPI -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Runs under mpirun: all processes go through all cases together. The conformance tests test the
// fabric on messages of every network; here they run on this one.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/mpi/MpiMessages.h"

#include "runtime/fabrics/processes/Agreement.h"
#include "runtime/fabrics/processes/ProcessFabric.h"
#include "test/lib/plans/Expect.h"
#include "test/runtime/fabrics/Network.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <thread>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

static std::unique_ptr<Mpi> mpi;

static std::shared_ptr<Messages> openMessages() {
  Expected<std::shared_ptr<Messages>> messages = mpi->openMessages();
  EXPECT_OK(messages);
  return *messages;
}

namespace {

/// Bytes in some parts with gaps between them.
struct Scattered {
  Scattered(const std::vector<size_t> &sizes, int first) {
    size_t at = 0;
    for (size_t size : sizes)
      at += size + 3;
    bytes.resize(at, std::byte{0xEE});
    at = 0;
    for (size_t size : sizes) {
      parts.push_back({bytes.data() + at, size});
      for (size_t i = 0; i < size && first >= 0; ++i)
        bytes[at + i] = std::byte(static_cast<unsigned char>(first++ * 7));
      at += size + 3;
    }
  }

  std::vector<std::byte> joined() const {
    std::vector<std::byte> all;
    for (const MessagePart &part : parts)
      all.insert(all.end(), part.data, part.data + part.bytes);
    return all;
  }

  std::vector<std::byte> bytes;
  std::vector<MessagePart> parts;
};

} // namespace

TEST(MpiMessages, PartsOfAnySizeGoAround) {
  std::shared_ptr<Messages> messages = openMessages();
  int64_t own = messages->process(), count = messages->numProcesses();
  int64_t next = (own + 1) % count, before = (own + count - 1) % count; // with one process, itself
  for (const auto &[from, to] : {std::pair<std::vector<size_t>, std::vector<size_t>>{{5}, {5}},
                                 {{1, 2, 3}, {6}},
                                 {{700001}, {1, 700000}},
                                 {{300000, 300000, 7}, {300000, 300007}}}) {
    Scattered sent(from, static_cast<int>(own)), expected(from, static_cast<int>(before)),
        received(to, -1);
    std::unique_ptr<MessageBatch> batch = messages->openBatch();
    ASSERT_OK(batch->receive(before, 5, received.parts));
    ASSERT_OK(batch->send(next, 5, sent.parts));
    ASSERT_OK(batch->wait());
    EXPECT_TRUE(received.joined() == expected.joined());
    EXPECT_EQ(received.bytes.back(), std::byte{0xEE}); // between parts nothing is written
  }
}

TEST(MpiMessages, TagsKeepTheirOwnOrder) {
  std::shared_ptr<Messages> messages = openMessages();
  int64_t own = messages->process(), count = messages->numProcesses();
  int64_t next = (own + 1) % count, before = (own + count - 1) % count;
  std::vector<int> sent(20), received(20, -1);
  std::iota(sent.begin(), sent.end(), 0);
  std::unique_ptr<MessageBatch> batch = messages->openBatch();
  // Sent by turns, received one tag after the other.
  for (size_t i = 0; i < 20; ++i) {
    MessagePart part{reinterpret_cast<std::byte *>(&sent[i]), sizeof(int)};
    ASSERT_OK(batch->send(next, static_cast<int64_t>(i % 2), {&part, 1}));
  }
  for (size_t tag : {1, 0})
    for (size_t i = tag; i < 20; i += 2) {
      MessagePart part{reinterpret_cast<std::byte *>(&received[i]), sizeof(int)};
      ASSERT_OK(batch->receive(before, static_cast<int64_t>(tag), {&part, 1}));
    }
  ASSERT_OK(batch->wait());
  EXPECT_EQ(received, sent);
}

TEST(MpiMessages, AgreementAndBroadcast) {
  std::shared_ptr<Messages> messages = openMessages();
  int64_t own = messages->process(), count = messages->numProcesses();
  EXPECT_GE(messages->largestTag(), 32767);
  EXPECT_EQ(messages->processesOnHost(), count);
  EXPECT_EQ(*agree(*messages, ReductionKind::Sum, own), count * (count - 1) / 2);
  for (size_t size : {0, 600, 100000})
    EXPECT_EQ(*broadcast(*messages, count - 1, std::string(size, static_cast<char>('a' + own))),
              std::string(size, static_cast<char>('a' + count - 1)));
}

/// Each process has one device: the bits are those of the local fabric.
TEST(MpiMessages, CollectivesHaveTheBitsOfTheLocalFabric) {
  int64_t count = mpi->numProcesses();
  Mesh mesh({{"a", count, false}});
  std::unique_ptr<Device> host = cpu::createCpuDevice(1);
  auto fabric = std::move(*openProcessFabric(mesh, openMessages()));
  ASSERT_EQ(std::ssize(fabric->devices()), 1);
  auto device = static_cast<size_t>(fabric->devices().front());
  std::unique_ptr<Communicator> end =
      std::move(*fabric->openCommunicator(fabric->devices().front(), 0, *host));
  std::unique_ptr<Queue> queue = std::move(*host->openQueue(QueueKind::Compute));
  Communicator::Group group = *end->openGroup({"a"});
  auto sources = std::make_shared<std::vector<int64_t>>();
  for (int64_t rank = 0; rank < count; ++rank)
    sources->push_back((rank + 1) % count);
  for (int64_t size : {1, 100, 9000})
    for (CollectiveKind kind : kAllCollectiveKinds)
      for (int64_t dim : {0, 1}) {
        CollectiveSpec spec = makeSpec(kind, {DType::F32, {2 * count, size * count}}, dim, 1 - dim);
        if (kind != CollectiveKind::AllToAll)
          spec.splitDim = dim;
        spec.members = count;
        spec.sources = sources;
        auto inputs = randomInputs<float>(mesh, spec.input, static_cast<uint64_t>(size));
        auto expected = dtc::runtime::testing::Network(mesh).run(spec, {"a"}, inputs);
        HostTensor output(spec.output());
        CollectiveOperands operands{inputs[device].bytes.data(), output.bytes.data()};
        ASSERT_OK(end->enqueue(*queue, group, {&spec, 1}, {&operands, 1}));
        ASSERT_OK(queue->finish());
        EXPECT_TRUE(output.bytes == expected[device].bytes) << name(kind) << " " << size;
      }
}

TEST(MpiMessages, SizesThatDisagree) {
  if (mpi->numProcesses() < 2)
    GTEST_SKIP() << "one process";
  for (size_t expected : {4, 16}) {
    std::shared_ptr<Messages> messages = openMessages();
    std::unique_ptr<MessageBatch> batch = messages->openBatch();
    std::vector<std::byte> bytes(16);
    if (messages->process() == 0) {
      MessagePart part{bytes.data(), 8};
      ASSERT_OK(batch->send(1, 3, {&part, 1}));
      EXPECT_OK(batch->wait());
    } else if (messages->process() == 1) {
      MessagePart part{bytes.data(), expected};
      ASSERT_OK(batch->receive(0, 3, {&part, 1}));
      EXPECT_ERROR(batch->wait(),
                   expected < 8 ? "process 0: the message has more than the 4 bytes"
                                : "process 0: the message has 8 bytes, its receiver expects 16");
    }
    EXPECT_EQ(*agree(*messages, ReductionKind::Min, 1), 1); // and all go on together
  }
}

/// In a run of its own: MPI does not end in good order afterwards.
TEST(MpiAbort, IsHeardByAll) {
  std::shared_ptr<Messages> messages = openMessages();
  std::promise<std::string> heard;
  std::once_flag once; // where the abort comes meanwhile, it may be told twice
  messages->onAbort(
      [&](const Error &reason) { std::call_once(once, [&] { heard.set_value(reason.message); }); });
  std::unique_ptr<MessageBatch> batch = messages->openBatch();
  int64_t value = 0;
  MessagePart part{reinterpret_cast<std::byte *>(&value), sizeof(value)};
  if (messages->process() == messages->numProcesses() - 1) {
    messages->abort(Error{"the disk is full"});
    messages->abort(Error{"something later"});
  } else {
    ASSERT_OK(batch->receive(messages->numProcesses() - 1, 9, {&part, 1}));
    EXPECT_ERROR(batch->wait(), "the disk is full");
    EXPECT_TRUE(batch->cancel());
  }
  EXPECT_ERROR(agree(*messages, ReductionKind::Max, 1), "the disk is full");
  EXPECT_EQ(heard.get_future().get(), "the disk is full");
  messages->onAbort(nullptr);
}

/// Notes in a folder that this process has passed, and waits for the notes of the others: after an
/// abort, a process that ends takes the others with it.
static bool havePassed(const std::filesystem::path &folder, int64_t process, int64_t count) {
  std::ofstream(folder / std::to_string(process)) << "passed\n";
  for (int i = 0; i < 6000; ++i) {
    int64_t notes = 0;
    for (int64_t other = 0; other < count; ++other)
      notes += std::filesystem::exists(folder / std::to_string(other)) ? 1 : 0;
    if (notes == count)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  Expected<std::unique_ptr<Mpi>> started = Mpi::start();
  if (!started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  mpi = std::move(*started);
  int status = RUN_ALL_TESTS();
  const char *folder = std::getenv("DTC_TEST_PASSED");
  if (folder && status == 0 && !havePassed(folder, mpi->process(), mpi->numProcesses()))
    status = 1;
  mpi.reset();
  return status;
}
