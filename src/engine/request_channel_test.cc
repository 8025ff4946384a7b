#include "engine/request_channel.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace espalier {
namespace {

TokenEvent event(TokenId token) {
  TokenEvent e;
  e.token = token;
  return e;
}

struct RequestChannelTest : ::testing::Test {
  std::shared_ptr<RequestChannel> channel = std::make_shared<RequestChannel>();
  TokenStream stream{channel};
  int told = 0;
  void listen() {
    stream.on_change([this] { ++told; });
  }
  TokenId poll() {
    bool over = false;
    const auto read = stream.poll(over);
    return read.has_value() ? read->token : over ? -2 : -1;
  }
};

TEST_F(RequestChannelTest, PollGivesEventsInOrderAndTheEndOnlyAfterTheLast) {
  EXPECT_EQ(poll(), -1);
  channel->push(event(5));
  channel->push(event(6));
  channel->close(Ok{}, {});
  EXPECT_EQ(poll(), 5);
  EXPECT_EQ(poll(), 6);
  EXPECT_EQ(poll(), -2);
  EXPECT_EQ(poll(), -2);
}

TEST_F(RequestChannelTest, TheCallbackIsCalledForAnEventAndOncePerRead) {
  listen();
  EXPECT_EQ(told, 0);
  channel->push(event(1));
  EXPECT_EQ(told, 1);
  channel->push(event(2));
  EXPECT_EQ(told, 1);  // nothing was read since
  EXPECT_EQ(poll(), 1);
  EXPECT_EQ(poll(), 2);
  EXPECT_EQ(poll(), -1);
  channel->push(event(3));
  EXPECT_EQ(told, 2);
}

TEST_F(RequestChannelTest, WhatIsThereAlreadyIsToldAtOnce) {
  channel->push(event(1));
  listen();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(poll(), 1);
  channel->close(Ok{}, {});
  EXPECT_EQ(told, 2);
  listen();  // over: told again to a new listener
  EXPECT_EQ(told, 3);
  listen();
  EXPECT_EQ(told, 4);
}

TEST_F(RequestChannelTest, TheEndIsToldThoughNothingWasRead) {
  listen();
  channel->push(event(1));
  channel->close(Error{ErrorCode::kInternal, "x"}, {});
  EXPECT_EQ(told, 2);
  EXPECT_EQ(poll(), 1);
  EXPECT_EQ(poll(), -2);
  EXPECT_EQ(stream.status().error().message, "x");
}

TEST_F(RequestChannelTest, TheFirstEndCounts) {
  listen();
  channel->close(Error{ErrorCode::kInternal, "first"}, {});
  channel->close(Ok{}, {});
  EXPECT_EQ(stream.status().error().message, "first");
  EXPECT_EQ(told, 1);
}

TEST_F(RequestChannelTest, AReplacedOrEmptyCallbackIsNotCalled) {
  listen();
  int other = 0;
  stream.on_change([&] { ++other; });
  channel->push(event(1));
  EXPECT_EQ(told, 0);
  EXPECT_EQ(other, 1);
  stream.on_change({});
  channel->close(Ok{}, {});
  EXPECT_EQ(other, 1);
}

TEST_F(RequestChannelTest, ACallbackThatThrowsHarmsNobody) {
  stream.on_change([] { throw std::runtime_error("no room"); });
  channel->push(event(1));
  EXPECT_EQ(poll(), 1);
}

// A connection that owns its stream and is owned by the stream's callback: the end of the request lets it go.
TEST(RequestChannel, TheCallbackMayOwnTheStream) {
  struct Connection {
    TokenStream stream;
  };
  for (const bool read : {false, true}) {
    const auto channel = std::make_shared<RequestChannel>();
    auto connection = std::make_shared<Connection>(Connection{TokenStream(channel)});
    const std::weak_ptr<Connection> watched = connection;
    connection->stream.on_change([connection] {
      bool over = false;
      connection->stream.poll(over);
    });
    if (read) channel->push(event(1));
    connection.reset();
    EXPECT_FALSE(watched.expired());
    channel->close(Ok{}, {});
    EXPECT_TRUE(watched.expired());
    EXPECT_TRUE(channel->cancelled());
  }
}

TEST(RequestChannel, ADroppedStreamCancelsAndIsNotTold) {
  const auto channel = std::make_shared<RequestChannel>();
  int told = 0;
  {
    TokenStream stream(channel);
    stream.on_change([&] { ++told; });
  }
  EXPECT_TRUE(channel->cancelled());
  channel->push(event(1));
  channel->close(Ok{}, {});
  EXPECT_EQ(told, 0);
}

TEST(RequestChannel, AssignmentCancelsTheReplacedStreamAlone) {
  const auto first = std::make_shared<RequestChannel>();
  const auto second = std::make_shared<RequestChannel>();
  TokenStream stream(first);
  stream = TokenStream(second);
  EXPECT_TRUE(first->cancelled());
  EXPECT_FALSE(second->cancelled());
  TokenStream& same = stream;
  stream = std::move(same);
  EXPECT_FALSE(second->cancelled());
}

// Nothing is missed when the consumer reads only when told, whatever the two threads do.
TEST(RequestChannel, AConsumerThatOnlyReadsWhenToldReadsEverything) {
  constexpr int kEvents = 20000;
  const auto channel = std::make_shared<RequestChannel>();
  TokenStream stream(channel);
  std::mutex mutex;
  std::condition_variable changed;
  bool told = false;
  stream.on_change([&] {
    const std::lock_guard lock(mutex);
    told = true;
    changed.notify_one();
  });
  std::thread producer([&] {
    for (int i = 0; i < kEvents; ++i) channel->push(event(i));
    channel->close(Ok{}, {});
  });
  int next = 0;
  bool over = false;
  while (!over) {
    {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return told; })) << "after event " << next;
      told = false;
    }
    while (const auto read = stream.poll(over)) ASSERT_EQ(read->token, next++);
  }
  EXPECT_EQ(next, kEvents);
  producer.join();
}

}  // namespace
}  // namespace espalier
