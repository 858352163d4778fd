// SPDX-License-Identifier: Apache-2.0
#include "torchleak/report/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "json_reader.hpp"
#include "json_writer.hpp"

namespace torchleak {
namespace {

using nlohmann::json;

constexpr std::size_t kDeepest = 64;  // a report nests six deep
constexpr std::string_view kSchemaFamily = "torchleak.report/";

// Offset of the bracket that opens one level too many. Checked before parsing, so that no parser's or
// destructor's depth depends on the file.
std::optional<std::size_t> too_deep_at(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) {
        return i;
      }
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::nullopt;
}

Result<json> parse(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail("the report is empty: the capture that wrote it may have been killed");
  }
  if (const auto at = too_deep_at(text)) {
    return fail(fmt::format("not a report: nested more than {} levels deep at byte {}", kDeepest, *at));
  }
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    // nlohmann counts from 1, and the end of the input as one more byte.
    if (error.byte > text.size()) {
      return fail(
          fmt::format("the report is cut off at byte {}: it was not written to its end", text.size()));
    }
    const std::size_t at = std::max<std::size_t>(error.byte, 1) - 1;
    return fail(fmt::format("not JSON: unexpected '{}' at byte {}", printable(text.substr(at, 1)), at));
  } catch (const json::out_of_range&) {
    return fail("the report holds a number that is out of range");
  }
}

// Nothing where it is ours; otherwise why this version cannot read it.
std::optional<std::string> schema_complaint(const json& document) {
  const auto found = document.is_object() ? document.find("schema") : document.end();
  if (!document.is_object() || found == document.end() || !found->is_string()) {
    return fmt::format("this is JSON but not a torchleak report: it has no \"schema\": \"{}\"",
                       kReportSchema);
  }
  const auto& schema = found->get_ref<const std::string&>();
  if (schema == kReportSchema) {
    return std::nullopt;
  }
  const std::string shown = printable(schema.substr(0, 60));
  const std::string_view version =
      std::string_view(schema).substr(std::min(kSchemaFamily.size(), schema.size()));
  const bool is_number =
      !version.empty() && version.find_first_not_of("0123456789") == std::string_view::npos;
  if (schema.starts_with(kSchemaFamily) && is_number && version[0] != '0') {
    return fmt::format(
        "the report is {}, written by a newer version; this one reads {}: upgrade torchleak-trace", shown,
        kReportSchema);
  }
  return fmt::format("this is JSON but not a torchleak report: its schema is '{}', not '{}'", shown,
                     kReportSchema);
}

}  // namespace

std::string to_json(const Report& report) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  document["schema"] = kReportSchema;
  report_json::JsonWriter writer(document);
  fields(writer, report);
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<Report> from_json(std::string_view text) try {
  const Result<json> document = parse(text);
  if (!document) {
    return std::unexpected(document.error());
  }
  if (auto complaint = schema_complaint(*document)) {
    return fail(std::move(*complaint));
  }
  Report report;
  std::string error;
  report_json::JsonReader reader(*document, nullptr, error);
  fields(reader, report);
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return report;
} catch (const std::exception& error) {  // out of memory, in the main
  return fail(fmt::format("could not read the report: {}", error.what()));
}

}  // namespace torchleak
