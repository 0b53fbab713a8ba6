// SPDX-License-Identifier: Apache-2.0
// grpc://HOST:PORT[,HOST:PORT…]/NAME: a data set on one server, or on several that have the same.
// grpcs:// is over TLS. One that lies in parts on several servers is the parts' names with a plus
// between them: grpc://ONE/NAME+grpc://TWO/NAME.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cutwater::remote {

struct Url {
  bool tls = false;
  std::vector<std::string> servers;  // HOST:PORT
  std::string name;                  // of the data set; empty: the only one

  std::string text() const;
};

bool is_url(std::string_view text);
// Throws Error(kInvalidArgument) that shows what it should look like.
Url parse_url(std::string_view text);
// Of each part, in their order.
std::vector<Url> parse_parts(std::string_view text);

}  // namespace cutwater::remote
