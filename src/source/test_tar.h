// SPDX-License-Identifier: Apache-2.0
// For tests: writes tar archives, good and bad, and opens them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "cutwater/source.h"
#include "source/test_folder.h"

namespace cutwater {

enum class Style { kUstar, kGnu, kPax };

inline std::string octal(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (; value > 0; value >>= 3) text[--digits] = static_cast<char>('0' + value % 8);
  return text;
}

// A header block; its checksum always holds.
struct TarHeader {
  std::string name;
  std::string size = octal(0, 11);  // the field as it stands
  char type = '0';
  std::string magic = std::string("ustar\00000", 8);
  std::string prefix;

  std::string block() const {
    std::string bytes(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) {
      bytes.replace(at, text.size(), text);
    };
    put(0, name.substr(0, 100));
    put(100, "0000644");
    put(124, size);
    put(136, octal(0, 11));
    put(148, "        ");
    bytes[156] = type;
    put(257, magic);
    put(345, prefix);
    std::uint64_t sum = 0;
    for (const char c : bytes) sum += static_cast<std::uint8_t>(c);
    put(148, octal(sum, 6) + '\0');
    return bytes;
  }
};

inline std::string padded(std::string data) {
  data.resize((data.size() + 511) / 512 * 512);
  return data;
}

inline std::string base256(std::uint64_t value) {
  std::string field(12, '\0');
  field[0] = '\x80';
  for (std::size_t i = 11; i > 3; --i, value >>= 8) field[i] = static_cast<char>(value & 0xff);
  return field;
}

inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string body = " " + key + "=" + value + "\n";
  std::size_t length = body.size();
  while (std::to_string(length).size() + body.size() != length) {
    length = std::to_string(length).size() + body.size();
  }
  return std::to_string(length) + body;
}

inline std::string extension(char type, const std::string& data) {
  TarHeader header;
  header.name = "extension";
  header.type = type;
  header.size = octal(data.size(), 11);
  return header.block() + padded(data);
}

inline std::string member(const std::string& name, const std::string& data,
                          Style style = Style::kUstar) {
  TarHeader header;
  header.name = name;
  header.size = octal(data.size(), 11);
  std::string before;
  if (style == Style::kUstar && name.size() > 100) {
    const std::size_t slash = name.rfind('/', 155);
    header.prefix = name.substr(0, slash);
    header.name = name.substr(slash + 1);
  } else if (style == Style::kGnu) {
    header.magic = std::string("ustar  \0", 8);
    header.prefix = "not a part of the name";
    header.size = base256(data.size());
    if (name.size() > 100) before = extension('L', name + '\0');
  } else if (style == Style::kPax) {
    header.name = "a name to ignore.txt";
    header.size = octal(1, 11);
    before = extension('g', pax_record("path", "ignored.jpg")) +
             extension('x', pax_record("mtime", "1.5") + pax_record("path", name) +
                                pax_record("size", std::to_string(data.size())));
  }
  return before + header.block() + padded(data);
}

inline const std::string kEnd(1024, '\0');

class TarTest : public testing::Test {
 protected:
  TarTest() {
    if (const char* cache = std::getenv(kCache)) cache_before_ = cache;
    ::setenv(kCache, folder_.path("cache").c_str(), 1);
  }
  ~TarTest() override {
    if (cache_before_) {
      ::setenv(kCache, cache_before_->c_str(), 1);
    } else {
      ::unsetenv(kCache);
    }
  }

  // Without an index: two archives may be written within one tick of the file system's clock.
  std::shared_ptr<const Source> open(const std::string& bytes, const std::string& name = "s.tar") {
    std::filesystem::remove(folder_.path(name + ".cwindex"));
    return open_tar({folder_.file(name, bytes)});
  }
  Failure refusal(const std::string& bytes) {
    return failure_of([&] { open(bytes); });
  }
  std::string kept(const std::string& name = "s.tar") const {
    std::ifstream file(folder_.path(name + ".cwindex"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static constexpr char kCache[] = "XDG_CACHE_HOME";
  TestFolder folder_;

 private:
  std::optional<std::string> cache_before_;
};

}  // namespace cutwater
