// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <string>

#include "json_fields.hpp"

namespace torchleak::report_json {

using OrderedJson = nlohmann::ordered_json;

class JsonWriter {
 public:
  static constexpr bool kWrites = true;
  explicit JsonWriter(OrderedJson& object) : object_(object) {}

  template <typename T>
  void operator()(const char* name, const T& value) {
    object_[name] = encode(value);
  }
  template <typename T>
  void added(const char* name, const T& value) {
    object_[name] = encode(value);
  }
  void null_if_empty(const char* name, const std::string& value) {
    object_[name] = value.empty() ? OrderedJson(nullptr) : OrderedJson(value);
  }
  template <typename Body>
  void nested(const char* name, Body body) {
    OrderedJson inner = OrderedJson::object();
    JsonWriter writer(inner);
    body(writer);
    object_[name] = std::move(inner);
  }
  void constant(const char* name, const char* value) { object_[name] = value; }
  void empty_list(const char* name) { object_[name] = OrderedJson::array(); }

 private:
  static OrderedJson encode(const std::string& value) { return value; }
  static OrderedJson encode(Role value) { return std::string(role_name(value)); }
  static OrderedJson encode(Source value) { return std::string(source_name(value)); }
  static OrderedJson encode(LayerState value) { return std::string(layer_state_name(value)); }
  // JSON has no infinity and no NaN; nlohmann would write null, which from_json refuses.
  static OrderedJson encode(double value) { return std::isfinite(value) ? value : 0.0; }
  template <std::integral T>
  static OrderedJson encode(const T& value) {
    return value;
  }
  template <typename T>
  static OrderedJson encode(const std::optional<T>& value) {
    return value ? encode(*value) : OrderedJson(nullptr);
  }
  template <typename T>
  static OrderedJson encode(const std::vector<T>& values) {
    OrderedJson list = OrderedJson::array();
    for (const T& value : values) {
      list.push_back(encode(value));
    }
    return list;
  }
  template <typename T>
  static OrderedJson encode(const std::map<std::string, T>& values) {
    OrderedJson object = OrderedJson::object();
    for (const auto& [name, value] : values) {
      object[name] = encode(value);
    }
    return object;
  }
  template <typename T>
  static OrderedJson encode(const T& value) {
    OrderedJson object = OrderedJson::object();
    JsonWriter writer(object);
    fields(writer, value);
    return object;
  }

  OrderedJson& object_;
};

}  // namespace torchleak::report_json
