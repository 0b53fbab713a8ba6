// SPDX-License-Identifier: Apache-2.0
#include "run/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "variant/form.h"

namespace cutwater {
namespace {

Fd nameless_file(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return Fd(fd);
  // Not every file system has files without a name: then one whose name is taken away at once.
  std::string name = folder + "/.spool-XXXXXX";
  Fd named(::mkostemp(name.data(), O_CLOEXEC));
  if (named.get() < 0) throw_system_error(errno, folder, "make a file in");
  ::unlink(name.c_str());
  return named;
}

}  // namespace

Spool::Spool(const std::string& folder, std::int64_t samples, Cut cut)
    : folder_(folder), cut_(cut), places_(static_cast<std::size_t>(samples)) {
  (void)nameless_file(folder);
}

bool Spool::has(SampleId id) const {
  MutexLock lock(mutex_);
  return places_[static_cast<std::size_t>(id)].taken;
}

void Spool::add(const Sample& sample) {
  int fd = -1;
  {
    MutexLock lock(mutex_);
    if (std::exchange(places_[static_cast<std::size_t>(sample.id)].taken, true)) return;
    if (file_.get() < 0) file_ = nameless_file(folder_);
    fd = file_.get();
  }
  const FormWriter form(sample, {}, Checksum::kXxh3);
  Buffer bytes(form.size());
  form.write(bytes.span());
  const std::uint64_t offset = end_.fetch_add(form.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written =
        ::pwrite(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(offset + at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_system_error(errno, folder_, "write to a file in");
    at += static_cast<std::size_t>(written);
  }
  MutexLock lock(mutex_);
  places_[static_cast<std::size_t>(sample.id)] = {offset, form.size(), true};
  ++count_;
}

std::optional<Sample> Spool::find(SampleId id, const ReadContext& into) const {
  Place place;
  int fd = -1;
  {
    MutexLock lock(mutex_);
    place = places_[static_cast<std::size_t>(id)];
    fd = file_.get();
  }
  if (place.size == 0) return std::nullopt;
  const auto bytes = std::make_shared<Buffer>(into.allocate(place.size));
  for (std::size_t at = 0; at < bytes->size();) {
    const ssize_t count =
        ::pread(fd, bytes->data() + at, bytes->size() - at, static_cast<off_t>(place.offset + at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_system_error(count == 0 ? EIO : errno, folder_, "read from a file in");
    at += static_cast<std::size_t>(count);
  }
  FormSource form{bytes->view(), bytes, &into.pool};
  form.checksum = Checksum::kXxh3;
  try {
    return read_form(form, id, cut_);
  } catch (const Error& error) {
    if (error.code() != Code::kBadSample) throw;
    ++damaged_;
    return std::nullopt;
  }
}

void Spool::clear() {
  MutexLock lock(mutex_);
  if (file_.get() >= 0) (void)::ftruncate(file_.get(), 0);
}

}  // namespace cutwater
