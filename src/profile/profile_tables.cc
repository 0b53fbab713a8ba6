// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_tables.h"

namespace cutwater {

ProfileParts parts_of(const Profile& profile) {
  const CutProfile* const last = profile.cuts.empty() ? nullptr : &profile.cuts.back();
  return {last != nullptr && !last->stable && !last->finish_s.empty(),
          !profile.excerpt.bytes.empty()};
}

std::vector<ProfileTable> tables_of(Profile& profile, const ProfileParts& parts) {
  std::vector<ProfileTable> tables;
  const auto table = [&](std::string_view name) -> ProfileTable& {
    for (ProfileTable& known : tables)
      if (known.name == name) return known;
    return tables.emplace_back(ProfileTable{name, {}});
  };
  for (const char* always : {"bytes", "op_s", "prefix_s", "finish_s", "first_s", "memory_s",
                             "variant_bytes", "variant_encode_s", "variant_decode_s"})
    table(always);
  if (parts.fresh)
    for (const char* fresh : {"fresh_finish_s", "fresh_variant_bytes", "fresh_variant_encode_s",
                              "fresh_variant_decode_s"})
      table(fresh);
  for (CutProfile& cut : profile.cuts) {
    table("bytes").columns.push_back(&cut.bytes);
    table("op_s").columns.push_back(&cut.op_s);
    table("prefix_s").columns.push_back(&cut.prefix_s);
    if (cut.stable) {
      table("first_s").columns.push_back(&cut.first_s);
      table("memory_s").columns.push_back(&cut.memory_s);
    } else if (!parts.fresh) {
      continue;
    }
    table(cut.stable ? "finish_s" : "fresh_finish_s").columns.push_back(&cut.finish_s);
    for (VariantProfile& variant : cut.variants) {
      const auto add = [&](std::string_view stable, std::string_view fresh,
                           std::vector<double>& column) {
        table(cut.stable ? stable : fresh).columns.push_back(&column);
      };
      add("variant_bytes", "fresh_variant_bytes", variant.bytes);
      add("variant_encode_s", "fresh_variant_encode_s", variant.encode_s);
      add("variant_decode_s", "fresh_variant_decode_s", variant.decode_s);
    }
  }
  if (parts.excerpt) {
    table("excerpt_bytes").columns.push_back(&profile.excerpt.bytes);
    table("excerpt_make_s").columns.push_back(&profile.excerpt.make_s);
    table("excerpt_finish_s").columns.push_back(&profile.excerpt.finish_s);
  }
  return tables;
}

}  // namespace cutwater
