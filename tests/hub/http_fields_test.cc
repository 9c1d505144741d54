#include "hub/http_fields.h"

#include <gtest/gtest.h>

namespace ullage::hub {
namespace {

TEST(HttpFields, AreFoundByNameIgnoringCase) {
  HttpFields fields;
  fields.add_line("HTTP/1.1 200 OK\r\n");
  fields.add_line("X-Repo-Commit:  abc \r\n");
  fields.add_line("ETag: \"1\"\r\n");
  fields.add_line("nonsense\r\n");
  fields.add_line(": empty\r\n");
  EXPECT_EQ(fields.find("x-repo-commit"), "abc");
  EXPECT_EQ(fields.find("etag"), "\"1\"");
  EXPECT_EQ(fields.find("absent"), "");
}

TEST(HttpFields, AnInterimResponseIsForgotten) {
  HttpFields fields;
  fields.add_line("HTTP/1.1 103 Early Hints\r\n");
  fields.add_line("ETag: \"early\"\r\n");
  fields.add_line("HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(fields.find("etag"), "");
}

TEST(HttpFields, EndlessFieldsAreNotKept) {
  HttpFields fields;
  const std::string line = "X-Long: " + std::string(60'000, 'x');
  for (int i = 0; i < 100; ++i) fields.add_line(line);
  fields.add_line("Late: " + std::string(60'000, 'y'));
  EXPECT_EQ(fields.find("late"), "");
}

TEST(ContentRange, IsReadWhereItIsOne) {
  const auto range = parse_content_range("bytes 10-19/100");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 10);
  EXPECT_EQ(range->last, 19);
  EXPECT_EQ(range->whole, 100);
  for (const char* text :
       {"", "bytes", "bytes */100", "bytes 10-19/*", "bytes 19-10/100", "bytes 10-100/100", "bytes -1-5/10",
        "bytes 1-5/99999999999999999999", "items 0-1/2", "bytes 0/5-3", "bytes 0-"}) {
    EXPECT_FALSE(parse_content_range(text)) << text;
  }
}

TEST(Count, IsWholeAndNotNegative) {
  EXPECT_EQ(parse_count("120"), 120);
  for (const char* text : {"", "-1", "1.5", "12 ", "Wed, 21 Oct 2015 07:28:00 GMT", "99999999999999999999"}) {
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
  }
}

TEST(Etag, IsAFilesNameOrNothing) {
  EXPECT_EQ(etag_name("\"a1b2\""), "a1b2");
  EXPECT_EQ(etag_name("W/\"a1b2\""), "a1b2");
  EXPECT_EQ(etag_name("a1b2"), "a1b2");
  for (const char* text : {"\"../x\"", "\"a/b\"", "\"a b\"", "\".\"", ""}) EXPECT_EQ(etag_name(text), "") << text;
  EXPECT_EQ(etag_name(std::string(1000, 'a')), "");
}

TEST(Origin, IsSchemeAndHost) {
  EXPECT_EQ(origin_of("https://Hub.Example:8080/a/b?c"), "https://hub.example:8080");
  EXPECT_EQ(origin_of("HTTP://host"), "http://host");
  for (const char* text :
       {"", "ftp://host/", "host/path", "https://", "https:///x", "https://user@host/x", "https://ho st/"}) {
    EXPECT_EQ(origin_of(text), "") << text;
  }
}

struct Leads {
  const char* location;
  const char* to;
};

// RFC 3986, section 5.2, for what servers send.
TEST(Location, IsResolvedAgainstWhereItCameFrom) {
  for (const auto& [location, to] : std::initializer_list<Leads>{{"https://other/x?y=z", "https://other/x?y=z"},
                                                                 {"/api/file", "http://host:1/api/file"},
                                                                 {"//cdn/file", "http://cdn/file"},
                                                                 {"sibling", "http://host:1/a/sibling"},
                                                                 {"file:///etc/passwd", ""},
                                                                 {"gopher:x", ""},
                                                                 {"", ""},
                                                                 {"/with blank", ""}}) {
    EXPECT_EQ(resolve_location("http://host:1/a/b?c=/d", location), to) << location;
  }
  EXPECT_EQ(resolve_location("http://host", "x"), "http://host/x");
}

}  // namespace
}  // namespace ullage::hub
