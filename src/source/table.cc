// SPDX-License-Identifier: Apache-2.0
// open_table: a list of files in a CSV (RFC 4180) or TSV file with a header line.
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "cutwater/source.h"
#include "source/file_list.h"
#include "source/read_file.h"

namespace cutwater {
namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{4} << 30;

// Reads the rows of a text. Fields may be quoted; a quoted field may hold separators, line breaks
// and doubled quotes. Lines end in LF or CRLF; a line with nothing on it is no row.
class RowReader {
 public:
  RowReader(const std::string& path, std::string_view text, char separator)
      : path_(path), text_(text), separator_(separator) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  // False at the end. Throws Error(kInvalidArgument) naming line and column.
  bool next(std::vector<std::string>& row) {
    while (at_line_end()) skip_line_end();
    if (at_ == text_.size()) return false;
    row_line_ = line_;
    std::size_t columns = 0;
    bool more = true;
    while (more) {
      if (row.size() == columns) row.emplace_back();
      read_field(row[columns], columns + 1);
      ++columns;
      more = at_ < text_.size() && text_[at_] == separator_;
      if (more) ++at_;
    }
    row.resize(columns);
    if (at_line_end()) skip_line_end();
    return true;
  }

  std::size_t row_line() const { return row_line_; }  // where the last row began, from 1

  [[noreturn]] void refuse(const std::string& reason) const {
    throw path_error(Code::kInvalidArgument, path_,
                     "line " + std::to_string(row_line_) + ": " + reason);
  }

 private:
  bool at_line_end() const {
    return at_ < text_.size() &&
           (text_[at_] == '\n' || (text_[at_] == '\r' && text_.substr(at_ + 1).starts_with('\n')));
  }

  void skip_line_end() {
    at_ += text_[at_] == '\r' ? 2u : 1u;
    ++line_;
  }

  bool at_field_end() const {
    return at_ == text_.size() || text_[at_] == separator_ || at_line_end();
  }

  void read_field(std::string& field, std::size_t column) {
    field.clear();
    if (at_ < text_.size() && text_[at_] == '"') {
      read_quoted(field, column);
      if (!at_field_end()) refuse_quotes(column, "text follows a closing quote");
      return;
    }
    for (; !at_field_end(); ++at_) {
      if (text_[at_] == '"') refuse_quotes(column, "a quote inside a field that is not quoted");
      field += text_[at_];
    }
  }

  void read_quoted(std::string& field, std::size_t column) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        if (at_ == text_.size() || text_[at_] != '"') return;
      }
      if (text_[at_] == '\n') ++line_;
      field += text_[at_];
    }
    refuse_quotes(column, "a quoted field is not closed");
  }

  [[noreturn]] void refuse_quotes(std::size_t column, const std::string& reason) const {
    refuse("column " + std::to_string(column) + ": " + reason +
           "; quote the whole field and double the quotes in it");
  }

  const std::string& path_;
  std::string_view text_;
  char separator_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t row_line_ = 1;
};

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Labels as they were written, each text stored once.
class LabelColumn {
 public:
  void add(const std::string& text) {
    const auto next = static_cast<std::int64_t>(number_of_.size());
    labels_.push_back(number_of_.try_emplace(text, next).first->second);
  }

  // The labels of the rows. Where one is not a whole number all are class names: `classes` gets
  // them sorted, and a label is its place there.
  std::vector<std::int64_t> finish(std::vector<std::string>& classes) && {
    std::vector<std::int64_t> values(number_of_.size());
    const bool numbers = std::all_of(number_of_.begin(), number_of_.end(), [](const auto& known) {
      return whole_number(known.first).has_value();
    });
    for (const auto& [text, number] : number_of_) {  // sorted by text
      values[static_cast<std::size_t>(number)] =
          numbers ? *whole_number(text) : static_cast<std::int64_t>(classes.size());
      if (!numbers) classes.push_back(text);
    }
    for (std::int64_t& label : labels_) label = values[static_cast<std::size_t>(label)];
    return std::move(labels_);
  }

 private:
  std::map<std::string, std::int64_t> number_of_;  // in the order met
  std::vector<std::int64_t> labels_;
};

struct Header {
  std::size_t columns = 0;
  std::size_t path = 0;
  std::optional<std::size_t> label;
};

Header read_header(RowReader& reader, const std::string& path) {
  std::vector<std::string> names;
  if (!reader.next(names)) {
    throw path_error(Code::kInvalidArgument, path,
                     "is empty; the first line must be a header with a column 'path'");
  }
  Header header;
  header.columns = names.size();
  std::optional<std::size_t> path_column;
  std::map<std::string, std::size_t> seen;
  std::string found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [first, is_new] = seen.emplace(names[i], i + 1);
    if (!is_new) {
      reader.refuse("the header has column '" + names[i] + "' twice (columns " +
                    std::to_string(first->second) + " and " + std::to_string(i + 1) + ")");
    }
    if (names[i] == "path") path_column = i;
    if (names[i] == "label") header.label = i;
    found += (i == 0 ? "" : ", ") + names[i];
  }
  if (!path_column) reader.refuse("the header has no column 'path'; its columns are: " + found);
  header.path = *path_column;
  return header;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

std::shared_ptr<const Source> open_table(const std::string& path) {
  const std::string text = File::open(path).text(kMaxTableBytes);
  RowReader reader(path, text, has_suffix(path, ".tsv") ? '\t' : ',');
  const Header header = read_header(reader, path);

  FileListBuilder files(folder_of(path));
  LabelColumn labels;
  std::vector<std::string> row;
  while (reader.next(row)) {
    if (row.size() != header.columns) {
      reader.refuse("has " + std::to_string(row.size()) + " columns, the header has " +
                    std::to_string(header.columns));
    }
    const std::string& file = row[header.path];
    if (file.empty()) reader.refuse("column 'path' is empty");
    if (file.find('\0') != std::string::npos) reader.refuse("column 'path' has a zero byte");
    files.add_path(file);
    if (!header.label) continue;
    if (row[*header.label].empty()) reader.refuse("column 'label' is empty");
    labels.add(row[*header.label]);
  }
  if (files.size() == 0) throw path_error(Code::kNotFound, path, "has a header but no rows");
  std::vector<std::string> classes;
  std::vector<std::int64_t> numbers = std::move(labels).finish(classes);
  return make_file_source(std::move(files).finish(std::move(numbers)), std::move(classes));
}

}  // namespace cutwater
