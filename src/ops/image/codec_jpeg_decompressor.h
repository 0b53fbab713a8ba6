// SPDX-License-Identifier: Apache-2.0
// libjpeg-turbo's decompressor, fed in Pillow's blocks. Private to codec_jpeg*.cc.
#pragma once

#include <cstdio>  // jpeglib.h needs it first
// clang-format off
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <string>
#include <utility>

#include "ops/image/codec_common.h"

namespace cutwater::image {

// A libjpeg decompressor over a file in memory. libjpeg's errors leave through longjmp, because C++
// exceptions may not pass its C frames: every libjpeg call that can fail is made within call().
class Decompressor {
 public:
  explicit Decompressor(Bytes file) : file_(file) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) { std::longjmp(self(info).jump_, 1); };
    errors_.output_message = [](j_common_ptr) {};
    source_.init_source = source_.term_source = [](j_decompress_ptr) {};
    source_.fill_input_buffer = [](j_decompress_ptr) -> boolean { return FALSE; };  // suspend
    source_.skip_input_data = [](j_decompress_ptr info, long count) {
      self(reinterpret_cast<j_common_ptr>(info)).skip(count);
    };
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.next_input_byte = file.data();
    call([&] { jpeg_create_decompress(&info_); });
    info_.src = &source_;
  }
  ~Decompressor() { jpeg_destroy_decompress(&info_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  jpeg_decompress_struct& info() { return info_; }

  // Runs `step`; an error of libjpeg in it becomes an Error. `step` may throw, but must not hold
  // objects with destructors while libjpeg runs.
  template <class Step>
  void call(Step&& step) {
    if (setjmp(jump_) != 0) refuse("JPEG is damaged: " + message());
    step();
  }

  // REQUIRES: within call().
  void read_header() {
    int status = JPEG_SUSPENDED;
    while (status != JPEG_HEADER_OK) {
      status = jpeg_read_header(&info_, FALSE);
      if (status == JPEG_SUSPENDED && !widen()) refuse("JPEG data end in the header");
    }
  }

  // Lets libjpeg see Pillow's next block of the file; false when it has seen all.
  bool widen() {
    constexpr std::size_t kBlock = 65536;
    return widen_to(std::min(file_.size(), seen_ + kBlock));
  }
  void widen_fully() { widen_to(file_.size()); }

 private:
  static Decompressor& self(j_common_ptr info) {
    return *static_cast<Decompressor*>(info->client_data);
  }

  bool widen_to(std::size_t end) {
    if (end == seen_) return false;
    source_.bytes_in_buffer += end - seen_;
    seen_ = end;
    skip(std::exchange(pending_skip_, 0));
    return true;
  }

  void skip(long count) {
    if (count <= 0) return;
    const auto wanted = static_cast<std::size_t>(count);
    const std::size_t now = std::min(wanted, source_.bytes_in_buffer);
    source_.next_input_byte += now;
    source_.bytes_in_buffer -= now;
    pending_skip_ = static_cast<long>(wanted - now);
  }

  std::string message() {
    char text[JMSG_LENGTH_MAX] = {};
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), text);
    return text;
  }

  Bytes file_;
  std::size_t seen_ = 0;   // bytes of the file that libjpeg was given
  long pending_skip_ = 0;  // bytes to drop from what it is given next
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  std::jmp_buf jump_{};
};

}  // namespace cutwater::image
