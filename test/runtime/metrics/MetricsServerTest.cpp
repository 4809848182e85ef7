//===- MetricsServerTest.cpp - Metrics for Prometheus ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metrics/MetricsServer.h"

#include "test/lib/plans/Expect.h"

#include <arpa/inet.h>
#include <chrono>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace metricsServerTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

/// A connection to a server.
static int connectTo(const std::string &address) {
  size_t colon = address.rfind(':');
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof(to)), 0);
  return fd;
}

/// The answer of a server at an address to GET /metrics.
static std::string get(const std::string &address) {
  int fd = connectTo(address);
  std::string request = "GET /metrics HTTP/1.0\r\n\r\n", answer;
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  char buffer[4096];
  for (ssize_t count; (count = read(fd, buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<size_t>(count));
  close(fd);
  return answer;
}

TEST(MetricsServer, HasTheLastStep) {
  auto server = MetricsServer::open("0", "gpt2 \"tiny\"");
  ASSERT_OK(server);
  std::string address = (*server)->address();
  EXPECT_TRUE(address.starts_with("127.0.0.1:")) << address;
  EXPECT_TRUE(get(address).starts_with("HTTP/1.1 200"));
  ASSERT_OK((*server)->begin(0));
  ASSERT_OK((*server)->write({.step = 1, .loss = 2.5, .seconds = 0.25, .evalLoss = 3}));
  ASSERT_OK((*server)->write({.step = 2, .loss = 2.25, .seconds = 0.5}));
  std::string answer = get(address);
  const std::string labels = "{model=\"gpt2 \\\"tiny\\\"\"} ";
  for (const char *line : {"dtc_step", "dtc_loss", "dtc_step_seconds", "dtc_eval_loss"})
    EXPECT_TRUE(contains(answer, "# TYPE " + std::string(line) + " gauge\n")) << answer;
  EXPECT_TRUE(contains(answer, "dtc_step" + labels + "2\n")) << answer;
  EXPECT_TRUE(contains(answer, "dtc_loss" + labels + "2.25\n")) << answer;
  EXPECT_TRUE(contains(answer, "dtc_eval_loss" + labels + "3\n")) << answer;
  EXPECT_TRUE(contains(answer, "dtc_step_timestamp_seconds" + labels)) << answer;
  EXPECT_FALSE(contains(answer, "dtc_loss_scale")) << answer;
  EXPECT_FALSE(contains(answer, "wait_seconds")) << answer;

  ASSERT_OK((*server)->write({.step = 3, .waitSeconds = {0.25, 0.5}}));
  answer = get(address);
  EXPECT_TRUE(contains(answer, "# TYPE dtc_wait_seconds gauge\n")) << answer;
  for (const char *line : {"process=\"0\"} 0.25\n", "process=\"1\"} 0.5\n"})
    EXPECT_TRUE(contains(answer, line)) << answer;

  EXPECT_ERROR(MetricsServer::open(address, ""),
               "cannot listen on " + address + ": the port is in use, or ");
}

TEST(MetricsServer, HasTheMetricsOfTheModel) {
  auto server = MetricsServer::open("0", "m");
  ASSERT_OK(server);
  std::string address = (*server)->address();
  StepMetrics metrics{.step = 1};
  metrics.expertImbalance = 1.25;
  metrics.droppedTokens = 3;
  metrics.ofModel = {{.name = "expert_tokens", .of = "h.0", .elements = {5, 3}},
                     {.name = "expert_tokens", .of = "h.\"1\"", .elements = {4, 4}},
                     {.name = "balance", .of = "", .elements = {2.5}, .isScalar = true},
                     {.name = "lost", .of = "h.0", .elements = {7}, .isScalar = true},
                     {.name = "sums", .of = "", .elements = {0.5}}};
  ASSERT_OK((*server)->write(metrics));
  std::string answer = get(address);
  EXPECT_TRUE(contains(answer, "\ndtc_expert_imbalance{model=\"m\"} 1.25\n")) << answer;
  EXPECT_TRUE(contains(answer, "\ndtc_dropped_tokens{model=\"m\"} 3\n")) << answer;
  EXPECT_TRUE(contains(answer, "# HELP dtc_model_expert_tokens The metric \"expert_tokens\" that "
                               "the model returned in the last step\n"
                               "# TYPE dtc_model_expert_tokens gauge\n"))
      << answer;
  for (const char *line : {"expert_tokens{model=\"m\",of=\"h.0\",element=\"0\"} 5\n",
                           "expert_tokens{model=\"m\",of=\"h.0\",element=\"1\"} 3\n",
                           "expert_tokens{model=\"m\",of=\"h.\\\"1\\\"\",element=\"1\"} 4\n",
                           "balance{model=\"m\"} 2.5\n", "lost{model=\"m\",of=\"h.0\"} 7\n",
                           "sums{model=\"m\",element=\"0\"} 0.5\n"})
    EXPECT_TRUE(contains(answer, std::string("\ndtc_model_") + line)) << answer;

  // After a later step, the metrics of that step alone.
  metrics.ofModel = {{.name = "expert_tokens", .of = "h.0", .elements = {6, 2}}};
  ASSERT_OK((*server)->write(metrics));
  answer = get(address);
  EXPECT_TRUE(contains(answer, "of=\"h.0\",element=\"0\"} 6\n")) << answer;
  EXPECT_FALSE(contains(answer, "element=\"0\"} 5\n")) << answer;
}

TEST(MetricsServer, AnswersWhileOthersIdle) {
  auto server = MetricsServer::open("0", "m");
  ASSERT_OK(server);
  std::string address = (*server)->address();
  // More than it has threads; half a request has come from each second one.
  std::vector<int> idle;
  for (int i = 0; i < 64; ++i) {
    idle.push_back(connectTo(address));
    if (i % 2 == 0)
      EXPECT_EQ(write(idle.back(), "GET /met", 8), 8);
  }
  auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(get(address).starts_with("HTTP/1.1 200"));
  // Prometheus gives up after 10 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  for (int fd : idle)
    close(fd);
}

TEST(MetricsServer, ListensOnlyWhereAsked) {
  EXPECT_EQ(*parseMetricsAddress("9400"), "127.0.0.1:9400");
  EXPECT_EQ(*parseMetricsAddress("0.0.0.0:9400"), "0.0.0.0:9400");
  EXPECT_EQ(*parseMetricsAddress("[::1]:0"), "[::1]:0");
  for (const char *text : {"", ":", ":9400", "9400:", "65536", "-1", "94x", "localhost:9400", "1,2",
                           "9400s", "127.0.0.1:9400,8", "+5", " 5"})
    EXPECT_ERROR(parseMetricsAddress(text),
                 "found \"" + std::string(text) + "\", expected a port from 0 to 65535, or ");
  EXPECT_ERROR(MetricsServer::open("203.0.113.1:9400", ""), "the address is none of this machine");
}

} // namespace metricsServerTest
