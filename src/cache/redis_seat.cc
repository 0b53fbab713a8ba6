// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_seat.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <utility>

namespace cutwater::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kTogether = 16s;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t hash = (a ^ std::rotl(b, 32)) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9;
  return hash ^ (hash >> 32);
}

std::string new_id(const std::string& name) {
  std::random_device random;
  std::string id = name.substr(0, 100) + "#";
  for (int i = 0; i < 3; ++i) id += std::to_string(random());
  return id;
}

}  // namespace

std::string encode(const Arrival& arrival) {
  return std::string(reinterpret_cast<const char*>(&arrival), sizeof arrival);
}

std::optional<Arrival> decode_arrival(std::string_view bytes) {
  Arrival arrival;
  static_assert(sizeof arrival == 24);
  if (bytes.size() != sizeof arrival) return std::nullopt;
  std::memcpy(&arrival, bytes.data(), sizeof arrival);
  return arrival;
}

std::string encode(const JobNote& note) {
  std::string text;
  for (const std::uint64_t number :
       {note.pulse, note.draw, note.tide, note.age_ms, std::uint64_t{note.in_epoch}})
    text += std::to_string(number) + " ";
  return text;
}

std::optional<JobNote> decode_note(std::string_view text) {
  std::array<std::uint64_t, 5> numbers{};
  for (std::uint64_t& number : numbers) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || read.ptr == text.data() + text.size() || *read.ptr != ' ')
      return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()) + 1);
  }
  constexpr std::uint64_t kYear = std::uint64_t{366} * 24 * 3600 * 1000;
  return JobNote{numbers[0], numbers[1], numbers[2], std::min(numbers[3], kYear), numbers[4] != 0};
}

Seat::Seat(JobOffer offer)
    : offer_(std::move(offer)),
      id_(new_id(offer_.name)),
      stable_(static_cast<std::size_t>(std::max<std::int64_t>(offer_.samples, 0))),
      named_(stable_.size()),
      had_(stable_.size()) {}

std::uint64_t Seat::begin_epoch(std::uint64_t draw) {
  const auto window = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())
                          .time_since_epoch() /
                      kTogether;
  MutexLock lock(mutex_);
  const std::uint64_t last = std::exchange(tide_, 0);
  const auto now = Clock::now();
  Clock::time_point youngest = now - kTogether;
  for (const Other& other : others_) {
    if (other.note.tide == last || other.note.tide == 0 || other.began < youngest) continue;
    youngest = other.began;
    tide_ = other.note.tide;
  }
  if (tide_ == 0) tide_ = mixed(offer_.data, static_cast<std::uint64_t>(window)) | 1;
  if (tide_ == last) tide_ = mixed(last, 1) | 1;
  draw_ = draw;
  began_ = now;
  has_news_ = true;
  named_.assign(stable_.size(), false);
  had_.assign(stable_.size(), false);
  left_ = offer_.samples;
  arrived_.clear();
  const std::uint64_t first = first_there();
  for (std::size_t at = 0; at < stable_.size(); ++at)
    if (stable_[at] >= first) name(static_cast<SampleId>(at));
  for (const Fresh& one : fresh_)
    if (one.draw == draw) name(one.sample);
  return tide_;
}

void Seat::had(std::uint64_t draw, SampleId sample) {
  MutexLock lock(mutex_);
  const auto at = static_cast<std::size_t>(sample);
  if (draw != draw_ || at >= had_.size() || had_[at] || left_ == 0) return;
  had_[at] = true;
  if (--left_ == 0) has_news_ = true;
}

void Seat::leave_epoch() {
  MutexLock lock(mutex_);
  if (std::exchange(left_, 0) > 0) has_news_ = true;
}

void Seat::arrivals(std::vector<SampleId>& samples) {
  MutexLock lock(mutex_);
  samples.insert(samples.end(), arrived_.begin(), arrived_.end());
  for (const SampleId sample : arrived_) named_[static_cast<std::size_t>(sample)] = false;
  arrived_.clear();
}

int Seat::others() const {
  MutexLock lock(mutex_);
  return static_cast<int>(
      std::ranges::count_if(others_, [](const Other& other) { return other.note.in_epoch; }));
}

int Seat::others_alike() const {
  MutexLock lock(mutex_);
  if (draw_ == 0) return 0;
  return static_cast<int>(std::ranges::count_if(
      others_, [draw = draw_](const Other& o) { return o.note.in_epoch && o.note.draw == draw; }));
}

std::string Seat::after() const {
  MutexLock lock(mutex_);
  return after_;
}

void Seat::add(const std::string& after, const std::vector<Arrival>& arrived, std::size_t room) {
  MutexLock lock(mutex_);
  after_ = after;
  room_ = room;
  for (const Arrival& arrival : arrived) {
    if (static_cast<std::size_t>(arrival.sample) >= stable_.size() ||
        std::ranges::find(offer_.forms, arrival.form) == offer_.forms.end())
      continue;
    remember(arrival);
    if (arrival.draw == 0 || arrival.draw == draw_) name(arrival.sample);
  }
}

void Seat::forget() {
  MutexLock lock(mutex_);
  after_.clear();
  arrived_.clear();
  named_.assign(named_.size(), false);
  stable_.assign(stable_.size(), 0);
  fresh_.clear();
}

// What is put again had gone, and is news again.
void Seat::name(SampleId sample) {
  const auto at = static_cast<std::size_t>(sample);
  if (named_[at] || had_[at]) return;
  named_[at] = true;
  arrived_.push_back(sample);
}

// For the epochs to come.
void Seat::remember(const Arrival& arrival) {
  if (arrival.draw == 0) {
    stable_[static_cast<std::size_t>(arrival.sample)] = ++count_;
    return;
  }
  if (fresh_.size() == 2 * stable_.size()) fresh_.pop_front();
  fresh_.push_back({arrival.draw, arrival.sample});
}

// The number from which on samples are taken to be there still.
std::uint64_t Seat::first_there() const {
  std::vector<std::uint64_t> numbers;
  std::ranges::copy_if(stable_, std::back_inserter(numbers),
                       [](std::uint64_t number) { return number > 0; });
  if (numbers.size() <= room_) return 1;
  const auto last_gone = numbers.begin() + static_cast<std::ptrdiff_t>(room_);
  std::ranges::nth_element(numbers, last_gone, std::ranges::greater());
  return *last_gone + 1;
}

bool Seat::has_news() const {
  MutexLock lock(mutex_);
  return has_news_;
}

JobNote Seat::note() {
  MutexLock lock(mutex_);
  has_news_ = false;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_);
  return {++pulse_, draw_, tide_, static_cast<std::uint64_t>(age.count()), left_ > 0};
}

void Seat::set_others(std::vector<Other> others) {
  MutexLock lock(mutex_);
  others_ = std::move(others);
}

}  // namespace cutwater::redis
