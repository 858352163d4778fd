// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "json_fields.hpp"
#include "torchleak/base/text.hpp"

namespace torchleak::report_json {

using nlohmann::json;

// Where in the document a value stands: a chain of frames on the stack, spelled out only when something is
// wrong.
struct JsonPath {
  const JsonPath* parent = nullptr;
  std::string_view key;   // of an object's field
  std::size_t index = 0;  // of a list's element
  bool is_element = false;

  std::string text() const {
    const std::string before = parent != nullptr ? parent->text() : "";
    if (is_element) {
      return fmt::format("{}[{}]", before, index);
    }
    return before.empty() ? printable(key) : before + "." + printable(key);
  }
};

// Reads one object's fields. Keeps the first thing that is wrong, as a sentence; once there is one it reads
// no further.
class JsonReader {
 public:
  static constexpr bool kWrites = false;
  JsonReader(const json& object, const JsonPath* path, std::string& error)
      : object_(object), path_(path), error_(error) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    const JsonPath path{path_, name};
    const json* found = find(name);
    if (found == nullptr) {
      complain(path, "is missing");
    } else {
      decode(*found, path, value);
    }
  }
  template <typename T>
  void added(const char* name, T& value) {
    if (find(name) != nullptr) {
      (*this)(name, value);
    }
  }
  void null_if_empty(const char* name, std::string& value) {
    const json* found = find(name);
    if (found == nullptr || !found->is_null()) {
      (*this)(name, value);
    }
  }
  template <typename Body>
  void nested(const char* name, Body body) {
    const JsonPath path{path_, name};
    const json* found = find(name);
    if (found == nullptr) {
      complain(path, "is missing");
    } else if (expect(found->is_object(), *found, path, "an object")) {
      JsonReader reader(*found, &path, error_);
      body(reader);
    }
  }
  void constant(const char*, const char*) {}
  void empty_list(const char*) {}

 private:
  const json* find(const char* name) const {
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }

  void complain(const JsonPath& path, std::string_view what) {
    if (error_.empty()) {
      error_ = fmt::format("the report's field {} {}", path.text(), what);
    }
  }
  bool expect(bool holds, const json& value, const JsonPath& path, std::string_view wanted) {
    if (!holds) {
      complain(path, fmt::format("must be {}, not {}", wanted, kind_of(value)));
    }
    return holds;
  }
  static std::string_view kind_of(const json& value) {
    return value.is_null()           ? "null"
           : value.is_string()       ? "a string"
           : value.is_boolean()      ? "true or false"
           : value.is_object()       ? "an object"
           : value.is_array()        ? "a list"
           : value.is_number_float() ? "a fraction"
                                     : "a number";
  }

  void decode(const json& from, const JsonPath& path, std::string& value) {
    if (expect(from.is_string(), from, path, "a string")) {
      value = from.get_ref<const std::string&>();
    }
  }
  void decode(const json& from, const JsonPath& path, bool& value) {
    if (expect(from.is_boolean(), from, path, "true or false")) {
      value = from.get<bool>();
    }
  }
  void decode(const json& from, const JsonPath& path, double& value) {
    if (expect(from.is_number(), from, path, "a number")) {
      value = from.get<double>();
    }
  }
  void decode(const json& from, const JsonPath& path, Role& value) {
    named(from, path, value, role_from_name, "role");
  }
  void decode(const json& from, const JsonPath& path, Source& value) {
    named(from, path, value, source_from_name, "source");
  }
  void decode(const json& from, const JsonPath& path, LayerState& value) {
    named(from, path, value, layer_state_from_name, "layer state");
  }
  template <typename T, typename FromName>
  void named(const json& from, const JsonPath& path, T& value, FromName from_name, std::string_view what) {
    if (!expect(from.is_string(), from, path, "a string")) {
      return;
    }
    const auto& name = from.get_ref<const std::string&>();
    if (const std::optional<T> known = from_name(name)) {
      value = *known;
    } else {
      complain(path, fmt::format("is '{}', which is no {} this version knows", printable(name.substr(0, 40)),
                                 what));
    }
  }

  template <std::integral T>
  void decode(const json& from, const JsonPath& path, T& value) {
    if (from.is_number_float()) {
      decode_whole_double(from.get<double>(), path, value);
    } else if (!expect(from.is_number_integer(), from, path, "a whole number")) {
      return;
    } else if (from.is_number_unsigned()) {
      store(from.get<std::uint64_t>(), path, value);
    } else {
      store(from.get<std::int64_t>(), path, value);
    }
  }
  // JSON knows one kind of number: 4096.0 and 4.096e3 are whole, and whole numbers beyond 64 bits arrive as
  // doubles.
  template <std::integral T>
  void decode_whole_double(double number, const JsonPath& path, T& value) {
    if (number != std::floor(number)) {
      complain(path, "must be a whole number, not a fraction");
    } else if (number < 0 && number >= -0x1p63) {
      store(static_cast<std::int64_t>(number), path, value);
    } else if (number >= 0 && number < 0x1p64) {
      store(static_cast<std::uint64_t>(number), path, value);
    } else {
      complain(path, "is out of range");
    }
  }
  template <std::integral From, std::integral T>
  void store(From number, const JsonPath& path, T& value) {
    if (std::in_range<T>(number)) {
      value = static_cast<T>(number);
    } else if (std::cmp_less(number, 0) && std::is_unsigned_v<T>) {
      complain(path, "is negative");
    } else {
      complain(path, "is out of range");
    }
  }

  template <typename T>
  void decode(const json& from, const JsonPath& path, std::optional<T>& value) {
    if (!from.is_null()) {
      decode(from, path, value.emplace());
    }
  }
  template <typename T>
  void decode(const json& from, const JsonPath& path, std::vector<T>& values) {
    if (!expect(from.is_array(), from, path, "a list")) {
      return;
    }
    values.reserve(from.size());
    for (const json& element : from) {
      const JsonPath here{.parent = &path, .key = {}, .index = values.size(), .is_element = true};
      decode(element, here, values.emplace_back());
      if (!error_.empty()) {
        return;
      }
    }
  }
  template <typename T>
  void decode(const json& from, const JsonPath& path, std::map<std::string, T>& values) {
    if (!expect(from.is_object(), from, path, "an object")) {
      return;
    }
    for (const auto& [name, element] : from.items()) {
      decode(element, JsonPath{&path, name}, values[name]);
    }
  }
  template <typename T>
  void decode(const json& from, const JsonPath& path, T& value) {
    if (expect(from.is_object(), from, path, "an object")) {
      JsonReader reader(from, &path, error_);
      fields(reader, value);
    }
  }

  const json& object_;
  const JsonPath* path_;
  std::string& error_;
};

}  // namespace torchleak::report_json
