// SPDX-License-Identifier: BSD-3-Clause
#include "registry/conf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace anydat::registry {

namespace {

constexpr std::size_t kFieldCount = 8;

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// The fields of one line, read from the left.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  // Puts the next field into `field`. False at the end of the line or the start of a comment, and when the line is
  // wrong, which error() then tells.
  bool next(std::string& field) {
    const std::size_t before = rest_.size();
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
    if (rest_.empty() || rest_.front() == '#') return false;  // CONF-9, CONF-10
    if (!first_ && rest_.size() == before) return fail("no blank between two fields");
    first_ = false;
    return rest_.front() == '"' ? quoted(field) : bare(field);
  }

  const char* error() const { return error_; }

 private:
  bool fail(const char* why) {
    error_ = why;
    return false;
  }

  // CONF-13: no character is special but those that end the field.
  bool bare(std::string& field) {
    std::size_t length = 0;
    while (length < rest_.size() && !is_blank(rest_[length]) && rest_[length] != '#') {
      if (rest_[length] == '"') return fail("a quote inside a bare field");
      ++length;
    }
    field = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }

  // CONF-12.
  bool quoted(std::string& field) {
    field.clear();
    for (std::size_t at = 1; at < rest_.size(); ++at) {
      if (rest_[at] == '"') {
        rest_.remove_prefix(at + 1);
        return true;
      }
      if (rest_[at] == '\\' && ++at == rest_.size()) break;
      field += rest_[at];
    }
    return fail("a quote that does not end");
  }

  std::string_view rest_;
  bool first_ = true;
  const char* error_ = nullptr;
};

// "u1.2" or "k1.2" (CONF-19).
bool parse_api_version(std::string_view text, ConfEntry& entry) {
  if (text.empty() || (text.front() != 'u' && text.front() != 'k')) return false;
  entry.kernel_api = text.front() == 'k';
  text.remove_prefix(1);
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view major = text.substr(0, dot);
  const std::string_view minor = text.substr(dot + 1);
  if (!all_digits(major) || !all_digits(minor)) return false;
  // Only a number that does not fit is left to go wrong: no program can ask for such a version.
  return std::from_chars(major.data(), major.data() + major.size(), entry.tuple.major).ec == std::errc{} &&
         std::from_chars(minor.data(), minor.data() + minor.size(), entry.tuple.minor).ec == std::errc{};
}

// "dapl.1.2": an id without a dot and two numbers (ruling A13).
bool is_provider_version(std::string_view text) {
  const std::size_t first = text.find('.');
  if (first == 0 || first == std::string_view::npos) return false;
  const std::size_t second = text.find('.', first + 1);
  if (second == std::string_view::npos) return false;
  return all_digits(text.substr(first + 1, second - first - 1)) && all_digits(text.substr(second + 1));
}

// Makes the entry of eight fields, or says what is wrong with them.
const char* make_entry(std::array<std::string, kFieldCount>& fields, ConfEntry& entry) {
  auto& [name, api_version, thread_safety, default_flag, library, provider_version, instance_data, platform] = fields;
  if (name.empty() || name.size() >= DAT_NAME_MAX_LENGTH) return "the IA name has not 1 to 255 characters";  // CONF-20
  if (!parse_api_version(api_version, entry)) return "the API version is not like u1.2";
  if (thread_safety != "threadsafe" && thread_safety != "nonthreadsafe") {
    return "the third field is neither threadsafe nor nonthreadsafe";
  }
  if (default_flag != "default" && default_flag != "nondefault") {
    return "the fourth field is neither default nor nondefault";
  }
  // The loader takes an empty path for the program itself.
  if (library.empty()) return "the library has no name";
  if (!is_provider_version(provider_version)) return "the provider version is not like dapl.1.2";
  entry.tuple.name = std::move(name);
  entry.tuple.thread_safe = thread_safety == "threadsafe" ? DAT_TRUE : DAT_FALSE;
  entry.is_default = default_flag == "default";
  entry.library = std::move(library);
  entry.provider_version = std::move(provider_version);
  entry.instance_data = std::move(instance_data);
  entry.platform_params = std::move(platform);
  return nullptr;
}

// An entry; nothing and no `why` for a line without one; nothing and a `why` for a bad line.
std::optional<ConfEntry> parse_line(std::string_view line, const char*& why) {
  why = nullptr;
  std::array<std::string, kFieldCount> fields;
  LineReader reader(line);
  std::size_t count = 0;
  for (std::string field; reader.next(field); ++count) {
    if (count == kFieldCount) {
      why = "more than eight fields";
      return std::nullopt;
    }
    fields[count] = std::move(field);
  }
  why = reader.error();
  if (!why && count != 0 && count < kFieldCount) why = "fewer than eight fields";
  // All fields become C strings, which could not hold it. A comment may.
  for (const std::string& field : fields) {
    if (!why && field.find('\0') != std::string::npos) why = "a NUL character";
  }
  if (why || count == 0) return std::nullopt;
  ConfEntry entry{};
  why = make_entry(fields, entry);
  if (why) return std::nullopt;
  return entry;
}

}  // namespace

Conf parse_conf(std::string_view text) {
  Conf conf;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());  // CONF-17
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);  // CONF-16
    const char* why = nullptr;
    if (std::optional<ConfEntry> entry = parse_line(line, why)) {
      conf.entries.push_back(std::move(*entry));
    } else if (why) {
      conf.bad_lines.push_back({number, why});
    }
  }
  return conf;
}

}  // namespace anydat::registry
