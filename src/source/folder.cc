// SPDX-License-Identifier: Apache-2.0
// open_folder: the classes, labels and order of torchvision's ImageFolder, found with one pass over
// the directories and without a stat per file.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "cutwater/source.h"
#include "source/file_list.h"
#include "source/read_file.h"

namespace cutwater {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// A directory as the kernel knows it, whatever path led there.
struct Place {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Place&) const = default;
};

// What a directory holds. Names are kept in one block: a flat folder may have millions of them.
struct Listing {
  Place place;
  std::vector<std::string> folders;
  std::string images;  // names, each followed by a zero byte; in no order

  std::vector<std::string_view> sorted_images() const {
    std::vector<std::string_view> names;
    const std::string_view block = images;
    for (std::size_t begin = 0; begin < block.size();) {
      const std::size_t end = block.find('\0', begin);
      names.push_back(block.substr(begin, end - begin));
      begin = end + 1;
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

// Links to directories are directories. A link that leads nowhere is a file, as for os.walk: it is
// listed, and reading it fails with its name.
bool is_folder(int directory, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return false;
  struct stat status;
  return ::fstatat(directory, entry.d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

class Folder {
 public:
  Folder(const std::string& path, const FolderOptions& options)
      : path_(path), allow_empty_(options.allow_empty) {
    for (const std::string& extension : options.extensions) {
      extensions_.push_back(lower_case(extension));
    }
  }

  std::shared_ptr<const Source> open() {
    Listing top = list(path_);
    above_.push_back(top.place);
    std::sort(top.folders.begin(), top.folders.end());

    FileListBuilder files(path_);
    std::vector<std::int64_t> labels;
    std::vector<std::string> empty;
    for (std::size_t label = 0; label < top.folders.size(); ++label) {
      const std::int64_t before = files.size();
      add_class(top.folders[label], files);
      labels.resize(static_cast<std::size_t>(files.size()), static_cast<std::int64_t>(label));
      if (files.size() == before) empty.push_back(top.folders[label]);
    }
    if (files.size() == 0) return flat(top);
    if (!empty.empty() && !allow_empty_) refuse_empty(empty);
    return make_file_source(std::move(files).finish(std::move(labels)), std::move(top.folders));
  }

 private:
  struct Found {
    std::string path;  // relative to the root, without a slash at the end
    Listing listing;
  };

  std::shared_ptr<const Source> flat(const Listing& top) const {
    if (top.images.empty()) {
      throw path_error(Code::kNotFound, path_,
                       "no image in this folder or its subfolders; looked for " +
                           join(extensions_) + " in any case");
    }
    FileListBuilder files(path_);
    const std::uint32_t directory = files.add_directory("");
    for (const std::string_view name : top.sorted_images()) files.add_file(directory, name);
    return make_file_source(std::move(files).finish({}), {});
  }

  // ImageFolder sorts the directories of a class by their full path as text: "a", "a-b", "a/c".
  void add_class(const std::string& name, FileListBuilder& files) {
    std::vector<Found> found;
    descend(name, found);
    std::sort(found.begin(), found.end(),
              [](const Found& a, const Found& b) { return a.path < b.path; });
    for (const Found& folder : found) {
      const std::uint32_t directory = files.add_directory(folder.path);
      for (const std::string_view file : folder.listing.sorted_images()) {
        files.add_file(directory, file);
      }
    }
  }

  // Adds the directory and all below that hold images. Ends because no directory lies below itself;
  // its depth is bounded by the system's limit on the length of paths.
  void descend(const std::string& relative, std::vector<Found>& found) {
    const std::string path = full(relative);
    Listing listing = list(path);
    if (std::find(above_.begin(), above_.end(), listing.place) != above_.end()) {
      throw path_error(Code::kInvalidArgument, path,
                       "a link leads back to a folder that contains it, so the images below never "
                       "end; remove the link");
    }
    above_.push_back(listing.place);
    for (const std::string& folder : listing.folders) descend(relative + "/" + folder, found);
    above_.pop_back();
    if (!listing.images.empty()) found.push_back({relative, std::move(listing)});
  }

  Listing list(const std::string& path) const {
    Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0) {
      if (errno == ENOTDIR) throw path_error(Code::kInvalidArgument, path, "is not a folder");
      throw_system_error(errno, path, "open the folder");
    }
    struct stat status;
    if (::fstat(fd.get(), &status) != 0) throw_system_error(errno, path, "stat the folder");
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
    if (!stream) throw_system_error(errno, path, "open the folder");
    fd.release();  // the stream closes it

    Listing listing;
    listing.place = {status.st_dev, status.st_ino};
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (is_folder(::dirfd(stream.get()), *entry)) {
        listing.folders.emplace_back(name);
      } else if (is_image(name)) {
        listing.images.append(name).push_back('\0');
      }
    }
    if (errno != 0) throw_system_error(errno, path, "list the folder");
    return listing;
  }

  bool is_image(std::string_view name) const {
    return std::any_of(extensions_.begin(), extensions_.end(),
                       [&](const std::string& extension) { return has_suffix(name, extension); });
  }

  std::string full(const std::string& relative) const {
    return path_.ends_with('/') ? path_ + relative : path_ + "/" + relative;
  }

  [[noreturn]] void refuse_empty(std::vector<std::string> empty) const {
    constexpr std::size_t kNamed = 10;
    std::string more;
    if (empty.size() > kNamed) {
      more = " and " + std::to_string(empty.size() - kNamed) + " more";
      empty.resize(kNamed);
    }
    throw path_error(Code::kNotFound, path_,
                     "no image in the classes " + join(empty) + more + "; looked for " +
                         join(extensions_) +
                         " in any case. Remove these folders, or pass allow_empty=True to keep "
                         "them as classes without samples");
  }

  std::string path_;
  bool allow_empty_;
  std::vector<std::string> extensions_;  // in lower case
  std::vector<Place> above_;             // from the root down to the directory being listed
};

}  // namespace

std::shared_ptr<const Source> open_folder(const std::string& path, const FolderOptions& options) {
  if (options.extensions.empty()) {
    throw path_error(Code::kInvalidArgument, path,
                     "no file extension is given, so no file would be listed");
  }
  return Folder(path, options).open();
}

}  // namespace cutwater
