// SPDX-License-Identifier: Apache-2.0
// The WebDataset convention: which members of a shard make up a sample.
#include "source/tar_index.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "source/file_list.h"
#include "source/tar_walk.h"

namespace cutwater {
namespace {

constexpr std::array<std::string_view, 10> kImageExtensions = {
    "jpg", "jpeg", "png", "webp", "bmp", "gif", "ppm", "pgm", "tif", "tiff"};
constexpr std::string_view kLabelExtension = "cls";

bool is_image(std::string_view extension) {
  return std::find(kImageExtensions.begin(), kImageExtensions.end(), extension) !=
         kImageExtensions.end();
}

struct MemberName {
  std::string_view key;   // folder and name up to the first dot of the name
  std::string extension;  // what follows that dot, in lower case
};

// None for names without a dot, and for hidden ones: they belong to no sample.
std::optional<MemberName> split(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  return MemberName{name.substr(0, dot), lower_case(std::string(name.substr(dot + 1)))};
}

// Puts members together and refuses samples that are not as they must be.
class Grouper {
 public:
  explicit Grouper(const File& shard) : shard_(shard) {}

  void add(const TarMember& member) {
    const std::optional<MemberName> name = split(member.name);
    if (!name) return;
    if (!open_ || name->key != key_) {
      end_sample();
      open_ = true;
      key_ = name->key;
    }
    if (is_image(name->extension)) {
      if (image_) refuse("has two images, ." + found_.front() + " and ." + name->extension);
      image_ = member;
      found_.insert(found_.begin(), name->extension);
    } else if (name->extension == kLabelExtension) {
      if (label_) refuse("has two .cls members");
      label_ = read_label(member);
      found_.push_back(name->extension);
    } else if (found_.size() < kMaxNamed) {
      found_.push_back(name->extension);
    }
  }

  TarIndex finish() && {
    end_sample();
    return std::move(index_);
  }

 private:
  static constexpr std::size_t kMaxNamed = 8;  // extensions kept for an error message

  void end_sample() {
    if (!open_) return;
    if (!image_) refuse_without_image();
    if (index_.samples.empty()) index_.has_labels = label_.has_value();
    if (index_.has_labels != label_.has_value()) {
      refuse(std::string(label_ ? "has a .cls member but samples before it have none"
                                : "has no .cls member but samples before it have one") +
             "; all samples need a label, or none");
    }
    index_.names += image_->name;
    index_.samples.push_back(
        {image_->offset, image_->size, label_.value_or(0), index_.names.size()});
    open_ = false;
    image_.reset();
    label_.reset();
    found_.clear();
  }

  std::int64_t read_label(const TarMember& member) const {
    constexpr std::uint64_t kMaxLabelBytes = 64;
    std::array<char, kMaxLabelBytes> bytes;
    if (member.size > kMaxLabelBytes) {
      refuse("has a .cls member of " + std::to_string(member.size) +
             " bytes; it must be one whole number as text");
    }
    shard_.read(member.offset, {reinterpret_cast<std::uint8_t*>(bytes.data()),
                                static_cast<std::size_t>(member.size)});
    constexpr std::string_view kSpace = " \t\r\n";
    std::string_view text(bytes.data(), static_cast<std::size_t>(member.size));
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    text = text.substr(0, text.find_last_not_of(kSpace) + 1);
    std::int64_t label = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
    if (error != std::errc() || end != text.data() + text.size()) {
      refuse("has a .cls member with '" + std::string(text) + "'; it must be one whole number");
    }
    return label;
  }

  [[noreturn]] void refuse_without_image() const {
    std::string list;
    for (const std::string& extension : found_) list += (list.empty() ? "." : ", .") + extension;
    std::string known;
    for (const std::string_view extension : kImageExtensions) {
      known += (known.empty() ? "." : ", .") + std::string(extension);
    }
    refuse("has no image, only " + list + "; an image is " + known);
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    constexpr std::size_t kMaxShown = 200;  // a name may have a million bytes
    throw path_error(Code::kInvalidArgument, shard_.path(),
                     "sample '" + key_.substr(0, kMaxShown) + "' " + reason);
  }

  const File& shard_;
  TarIndex index_;
  // The sample being put together.
  bool open_ = false;
  std::string key_;
  std::optional<TarMember> image_;
  std::optional<std::int64_t> label_;
  std::vector<std::string> found_;  // extensions, the image's first
};

}  // namespace

TarIndex index_tar(const File& shard) {
  // Without this the kernel would read ahead, and with that the very data that is skipped.
  ::posix_fadvise(shard.fd(), 0, 0, POSIX_FADV_RANDOM);
  Grouper grouper(shard);
  TarWalk walk(shard);
  while (const std::optional<TarMember> member = walk.next()) grouper.add(*member);
  ::posix_fadvise(shard.fd(), 0, 0, POSIX_FADV_NORMAL);
  return std::move(grouper).finish();
}

}  // namespace cutwater
