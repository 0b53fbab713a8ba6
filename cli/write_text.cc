// SPDX-License-Identifier: Apache-2.0
#include "write_text.h"

#include <cerrno>
#include <cstring>

#include "cutwater/error.h"
#include "source/kept_file.h"

namespace cutwater::cli {

void write_text(const std::string& path, std::string_view text) {
  errno = 0;
  if (!store_whole(path, text, 0644))
    throw Error(Code::kIo, "cannot write '" + path + "'" +
                               (errno != 0 ? ": " + std::string(std::strerror(errno)) : ""));
}

}  // namespace cutwater::cli
