// SPDX-License-Identifier: Apache-2.0
// The first half of JPEG decoding: the entropy-coded data of a baseline scan to coefficients. For
// sound scans; whatever is odd about one is left to libjpeg-turbo.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/image/codec.h"
#include "ops/image/jpeg_geometry.h"
#include "ops/image/jpeg_huffman.h"
#include "ops/image/jpeg_planes.h"
#include "ops/image/jpeg_symbols.h"

namespace cutwater::image {

// What the scan is decoded with.
struct BaselineScan {
  JpegGeometry geometry;
  std::array<Quantizer, 3> quantizers{};
  std::array<const HuffmanCodes*, 3> dc_codes{};
  std::array<AcTable*, 3> ac_tables{};  // not const: they grow a part that few need
  std::int64_t restart_interval = 0;    // MCUs; 0: no restarts
  Bytes data;                           // from behind the scan's header to the end of the file
};

// The data without stuffing and restart markers. Kept by a thread and used again.
struct ScanBits {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> segments;  // in bits: where each restart interval begins, and the end

  // False: the data do not end in an end marker, or have something else within them.
  bool read(const BaselineScan& scan);
  void give_up_large();  // what a huge image took is not kept for ever
};

// A place between two MCUs from which reading can go on.
struct Checkpoint {
  std::int64_t bit = 0;
  std::array<std::int16_t, 3> dc{};  // predictions
  bool operator==(const Checkpoint&) const = default;
};

// Reads MCUs in order. Where a function returns false, the scan is not sound.
class ScanReader {
 public:
  ScanReader(const BaselineScan& scan, const ScanBits& bits);

  // Where the coefficients of the MCUs that are kept from now on go.
  void keep_into(BlockStrip& strip);
  // Where the symbols of the MCUs that are copied from now on go.
  void copy_into(JpegSymbols& symbols) { symbols_ = &symbols; }

  [[nodiscard]] bool keep(std::int64_t mcus) { return read<To::kStrip>(mcus); }
  [[nodiscard]] bool copy(std::int64_t mcus) { return read<To::kSymbols>(mcus); }
  [[nodiscard]] bool skip(std::int64_t mcus) { return read<To::kNothing>(mcus); }

  // Where the first DC coefficient of a component stands in an MCU, and which it is.
  struct DcPlace {
    std::int64_t begin = 0, end = 0;  // bits
    int value = 0;
  };
  // Steps over one MCU, and tells that of each component. REQUIRES: no restarts.
  [[nodiscard]] bool find_dc(std::array<DcPlace, 3>& places);

  // REQUIRES: no restarts.
  Checkpoint here() const;
  void go_to(const Checkpoint& checkpoint);

 private:
  struct Component {
    const HuffmanCodes* dc;
    AcTable* ac;
    const SkipTable* skips = nullptr;  // once something is stepped over
    int prediction = 0;
    int lowest = 0;            // prediction that no picture has less than…
    unsigned predictions = 0;  // …and how many there are from there on
  };
  struct Block {
    std::size_t component;
    std::int16_t* strip = nullptr;     // where the coefficients of its row of blocks go
    std::int64_t first = 0, step = 0;  // its place in the first MCU, and from MCU to MCU
  };

  // What becomes of MCUs that are read.
  enum class To : std::uint8_t { kNothing, kStrip, kSymbols };
  template <To kTo>
  bool read(std::int64_t mcus);
  void prepare_skips();
  static bool read_dc(BitReader& reader, Component& component);
  static bool read_rare(BitReader& reader, const AcTable& table, unsigned& k, int& value);
  static bool keep_ac(BitReader& reader, const AcTable& table, std::int16_t* block);
  static bool copy_ac(BitReader& reader, const AcTable& table, std::size_t component,
                      JpegSymbols& symbols);
  static bool skip_ac(BitReader& reader, const AcTable& table, const SkipTable& skips);
  bool restart();

  const BaselineScan& scan_;
  const ScanBits& bits_;
  BitReader reader_;
  std::array<Component, 3> components_{};
  std::array<Block, 10> blocks_{};  // of an MCU
  std::size_t block_count_ = 0;
  std::int64_t kept_ = 0;  // MCUs since keep_into
  JpegSymbols* symbols_ = nullptr;
  std::int64_t until_restart_ = 0;
  std::size_t segment_ = 0;
  std::int64_t end_bit_;
};

}  // namespace cutwater::image
