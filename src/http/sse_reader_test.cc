#include "http/sse_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> feed(SseReader& reader, std::string_view bytes) {
  const std::vector<SseEvent> events = reader.feed(bytes).value();
  std::vector<std::string> data;
  for (const SseEvent& event : events) data.push_back(event.data);
  return data;
}

std::vector<std::string> read(std::string_view bytes) {
  SseReader reader;
  return feed(reader, bytes);
}

TEST(SseReader, AnEventEndsWithAnEmptyLine) {
  EXPECT_THAT(read("data: a\n\ndata: b\n\n"), ElementsAre("a", "b"));
  EXPECT_THAT(read("data: a\r\n\r\ndata: b\r\n\r\n"), ElementsAre("a", "b"));
  EXPECT_THAT(read("data: a\r\rdata: b\r\r"), ElementsAre("a", "b"));
  EXPECT_THAT(read("data: a\n\r\ndata: b\r\n\n"), ElementsAre("a", "b"));
  EXPECT_THAT(read("data: a\ndata: b\n\n\n\n\ndata: c\n\n"), ElementsAre("a\nb", "c"));
}

TEST(SseReader, AnEventIsThereAsSoonAsItsEmptyLineIs) {
  SseReader reader;
  EXPECT_THAT(feed(reader, "data: a\n"), IsEmpty());
  EXPECT_TRUE(reader.in_event());
  EXPECT_THAT(feed(reader, "\n"), ElementsAre("a"));
  EXPECT_FALSE(reader.in_event());
  EXPECT_THAT(feed(reader, "data: b\r\n\r"), ElementsAre("b"));  // the LF to come adds nothing
  EXPECT_FALSE(reader.in_event());
  EXPECT_THAT(feed(reader, "\ndata: c\r\n\r\n"), ElementsAre("c"));
}

TEST(SseReader, OneBlankBehindTheColonIsNotPartOfTheValue) {
  EXPECT_THAT(read("data:a\n\ndata: a\n\ndata:  a\n\ndata:\ta\n\n"), ElementsAre("a", "a", " a", "\ta"));
  EXPECT_THAT(read("data: a: b\n\n"), ElementsAre("a: b"));
}

TEST(SseReader, EmptyDataIsAnEventAndNoDataIsNone) {
  EXPECT_THAT(read("data\n\ndata:\n\ndata: \ndata\n\n"), ElementsAre("", "", "\n"));
  EXPECT_THAT(read(": comment\n\nevent: x\n\nid: 1\n\nretry: 5\n\ndatum: y\n\n"), IsEmpty());
}

TEST(SseReader, CommentsAndOtherFieldsDoNotTouchTheEvent) {
  EXPECT_THAT(read(": ping\n: ping\n\ndata: a\n: inside\nid: 7\ndata: b\nretry: 3\n\n"), ElementsAre("a\nb"));
}

TEST(SseReader, TheTypeBelongsToItsEventAlone) {
  SseReader reader;
  const std::vector<SseEvent> events = reader.feed("event: error\ndata: a\n\ndata: b\n\nevent: lost\n\ndata: c\n\n").value();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].type, "error");
  EXPECT_EQ(events[1].type, "");
  EXPECT_EQ(events[2].type, "");
}

TEST(SseReader, DoneEndsTheStream) {
  SseReader reader;
  EXPECT_THAT(feed(reader, "data: a\n\ndata: [DONE]\n\ndata: b\n\n"), ElementsAre("a"));
  EXPECT_TRUE(reader.done());
  EXPECT_THAT(feed(reader, "data: c\n\n"), IsEmpty());
  EXPECT_FALSE(reader.in_event());
}

TEST(SseReader, WordsThatOnlyContainDoneDoNotEndTheStream) {
  SseReader reader;
  EXPECT_THAT(feed(reader, "data: [DONE] \n\ndata: \"[DONE]\"\n\ndata: x\ndata: [DONE]\n\n"),
              ElementsAre("[DONE] ", "\"[DONE]\"", "x\n[DONE]"));
  EXPECT_FALSE(reader.done());
}

TEST(SseReader, AnUnfinishedEventStaysInside) {
  SseReader reader;
  EXPECT_THAT(feed(reader, "data: a\n\ndata: b\n"), ElementsAre("a"));
  EXPECT_TRUE(reader.in_event());
  SseReader fresh;
  EXPECT_FALSE(fresh.in_event());
  EXPECT_THAT(feed(fresh, "d"), IsEmpty());
  EXPECT_TRUE(fresh.in_event());
}

TEST(SseReader, AByteOrderMarkMayLead) {
  EXPECT_THAT(read("\xef\xbb\xbf" "data: a\n\n"), ElementsAre("a"));
  EXPECT_THAT(read("data: a\n\n\xef\xbb\xbf" "data: b\n\n"), ElementsAre("a"));  // only at the beginning
}

TEST(SseReader, BytesOfDataPassUnchanged) {
  const std::string data = "{\"t\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"} \xff" + std::string(1, '\0');
  EXPECT_THAT(read("data: " + data + "\n\n"), ElementsAre(data));
}

TEST(SseReader, EveryCutGivesTheSameEvents) {
  const std::string stream =
      "\xef\xbb\xbf: hello\r\n\r\ndata: {\"a\":\"\xe2\x82\xac\"}\r\n\r\n"
      "event: e\ndata: 1\ndata:2\n\n\rdata: x\r\rdata\n\n: ping\n\nid: 1\ndata: last\n\ndata: [DONE]\n\n";
  const std::vector<std::string> whole = read(stream);
  ASSERT_THAT(whole, ElementsAre("{\"a\":\"\xe2\x82\xac\"}", "1\n2", "x", "", "last"));
  for (size_t first = 0; first <= stream.size(); ++first) {
    for (size_t second = first; second <= stream.size(); ++second) {
      SseReader reader;
      std::vector<std::string> seen;
      for (const std::string& piece : {stream.substr(0, first), stream.substr(first, second - first), stream.substr(second)}) {
        for (std::string& data : feed(reader, piece)) seen.push_back(std::move(data));
      }
      ASSERT_EQ(seen, whole) << "cut at " << first << " and " << second;
      ASSERT_TRUE(reader.done()) << "cut at " << first << " and " << second;
    }
  }
  SseReader reader;
  std::vector<std::string> seen;
  for (const char byte : stream) {
    for (std::string& data : feed(reader, std::string_view(&byte, 1))) seen.push_back(std::move(data));
  }
  EXPECT_EQ(seen, whole);
}

TEST(SseReader, AnEventBeyondTheLimitIsAnErrorInWhateverPiecesItComes) {
  const auto refused = [](const std::vector<std::string>& pieces) {
    SseReader reader(20);
    for (const std::string& piece : pieces) {
      const auto events = reader.feed(piece);
      if (!events.ok()) return events.error().code == ErrorCode::kResourceExhausted;
    }
    return false;
  };
  EXPECT_FALSE(refused({"data: 12345678901234\n\n", "data: 12345678901234\n\n"}));  // 20 bytes each
  EXPECT_TRUE(refused({"data: 123456789012345\n\n"}));
  EXPECT_TRUE(refused({"data: 1234567", "89012345"}));
  EXPECT_FALSE(refused({"data: 1234567890\ndata: 1234\n\n"}));  // 10 + 10
  EXPECT_TRUE(refused({"data: 1234567890\ndata: 12345\n\n"}));
  EXPECT_FALSE(refused({": comment\n: comment\n: comment\nid: 1\n"}));  // nothing of it is kept
  EXPECT_TRUE(refused({std::string(21, ':')}));
}

}  // namespace
}  // namespace espalier
