#include "api/temporal/callbacks.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/temporal/try.h"
#include "base/error.h"

namespace fairlead::api {

namespace {

using errors::invalid_argument;
using temporal::api::common::v1::Callback;

constexpr std::string_view kInsecure = "http://";
constexpr std::string_view kSecure = "https://";

// Whether `text` is of the form; a star in it stands for anything.
bool matches(std::string_view form, std::string_view text) {
  auto star = form.find('*');
  if (star == std::string_view::npos) return form == text;
  if (!text.starts_with(form.substr(0, star))) return false;
  text.remove_prefix(star);
  for (form.remove_prefix(star + 1); (star = form.find('*')) != std::string_view::npos;
       form.remove_prefix(star + 1)) {
    const auto at = text.find(form.substr(0, star));
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + star);
  }
  return text.ends_with(form);
}

bool begins_with(const std::string& url, std::string_view scheme) {
  return absl::StartsWithIgnoreCase(url, absl::string_view(scheme.data(), scheme.size()));
}

// Narrower than what an address may be, so that nobody who reads it differently is led elsewhere.
bool is_plain_host(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("-._~:[]").find(c) != std::string_view::npos;
  });
}

absl::Status check_header(const Callback::Nexus& nexus, int64_t bytes_max) {
  int64_t bytes = 0;
  for (const auto& [name, value] : nexus.header()) {
    bytes += static_cast<int64_t>(name.size() + value.size());
    const auto is_control = [](char c) {
      return absl::ascii_iscntrl(static_cast<unsigned char>(c));
    };
    if (std::any_of(name.begin(), name.end(), is_control) ||
        std::any_of(value.begin(), value.end(), is_control) ||
        name.find(':') != std::string::npos || name.empty()) {
      return invalid_argument(absl::StrCat("invalid header: ", name));
    }
  }
  if (bytes > bytes_max) {
    return invalid_argument(
        absl::StrCat("invalid header: header size longer than max allowed size of ", bytes_max));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CallbackAddresses> CallbackAddresses::parse(std::string_view text) {
  CallbackAddresses addresses;
  const std::vector<std::string> entries = absl::StrSplit(
      absl::string_view(text.data(), text.size()), absl::ByAnyChar(", "), absl::SkipEmpty());
  for (const auto& entry : entries) {
    Rule rule;
    rule.insecure = entry.starts_with(kInsecure);
    const size_t scheme = rule.insecure                ? kInsecure.size()
                          : entry.starts_with(kSecure) ? kSecure.size()
                                                       : 0;
    rule.pattern = entry.substr(scheme);
    if (rule.pattern.empty() || rule.pattern.find('/') != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("holds '", entry,
                       "', which is no address; write host:port, with * for anything, after "
                       "http:// if it may be called without TLS"));
    }
    addresses.rules_.push_back(std::move(rule));
  }
  return addresses;
}

absl::Status CallbackAddresses::check(const std::string& url) const {
  const bool is_insecure = begins_with(url, kInsecure);
  if (!is_insecure && !begins_with(url, kSecure)) {
    return invalid_argument(absl::StrCat("invalid url: unknown scheme: ", url));
  }
  std::string_view host =
      std::string_view(url).substr(is_insecure ? kInsecure.size() : kSecure.size());
  host = host.substr(0, host.find_first_of("/?#"));
  if (host.empty()) return invalid_argument("invalid url: missing host");
  const bool has_space = std::any_of(url.begin(), url.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) || c == ' ';
  });
  if (!is_plain_host(host) || has_space) {
    return invalid_argument(absl::StrCat("invalid callback url: ", url));
  }
  for (const auto& rule : rules_) {
    if (!matches(rule.pattern, host)) continue;
    if (rule.insecure || !is_insecure) return absl::OkStatus();
    return invalid_argument(
        absl::StrCat("invalid url: callback address does not allow insecure connections: ", url));
  }
  return invalid_argument(
      absl::StrCat("invalid url: url does not match any configured callback address: ", url));
}

absl::StatusOr<std::vector<std::string>> read_callbacks(
    const google::protobuf::RepeatedPtrField<Callback>& callbacks, const CallbackAddresses& allowed,
    const history::Limits& limits) {
  if (callbacks.size() > limits.callbacks) {
    return invalid_argument(
        absl::StrCat("cannot attach more than ", limits.callbacks, " callbacks to an execution"));
  }
  std::vector<std::string> kept;
  for (const auto& callback : callbacks) {
    if (!callback.has_nexus()) {
      return errors::unimplemented("this kind of callback is not implemented by this server");
    }
    const auto& nexus = callback.nexus();
    if (static_cast<int64_t>(nexus.url().size()) > limits.callback_url_bytes) {
      return invalid_argument(absl::StrCat(
          "invalid url: url length longer than max length allowed of ", limits.callback_url_bytes));
    }
    // The address of Nexus operations inside of the server.
    if (absl::StartsWith(nexus.url(), "temporal://")) {
      return errors::unimplemented(
          "callbacks to Nexus operations are not implemented by this server");
    }
    FL_TRY(allowed.check(nexus.url()));
    FL_TRY(check_header(nexus, limits.callback_header_bytes));
    Callback written = callback;
    written.mutable_nexus()->clear_header();
    for (const auto& [name, value] : nexus.header()) {
      (*written.mutable_nexus()->mutable_header())[absl::AsciiStrToLower(name)] = value;
    }
    kept.push_back(written.SerializeAsString());
  }
  return kept;
}

history::CallbackOutcome judge(const CallbackAnswer& answer) {
  using Kind = history::CallbackOutcome::Kind;
  struct Meaning {
    int status;
    const char* name;
    Kind kind;
  };
  constexpr std::array<Meaning, 11> kMeanings = {{{400, "BAD_REQUEST", Kind::kRefused},
                                                  {401, "UNAUTHENTICATED", Kind::kRefused},
                                                  {403, "UNAUTHORIZED", Kind::kRefused},
                                                  {404, "NOT_FOUND", Kind::kRefused},
                                                  {408, "REQUEST_TIMEOUT", Kind::kFailed},
                                                  {409, "CONFLICT", Kind::kRefused},
                                                  {429, "RESOURCE_EXHAUSTED", Kind::kFailed},
                                                  {500, "INTERNAL", Kind::kFailed},
                                                  {501, "NOT_IMPLEMENTED", Kind::kRefused},
                                                  {503, "UNAVAILABLE", Kind::kFailed},
                                                  {520, "UPSTREAM_TIMEOUT", Kind::kFailed}}};
  if (answer.status >= 200 && answer.status < 300) return {};
  const auto* meaning = std::find_if(kMeanings.begin(), kMeanings.end(), [&](const Meaning& known) {
    return known.status == answer.status;
  });
  if (meaning == kMeanings.end()) {
    return {Kind::kFailed, absl::StrCat("unexpected response status: \"", answer.status,
                                        answer.reason.empty() ? "" : " ", answer.reason, "\"")};
  }
  Kind kind = meaning->kind;
  if (absl::EqualsIgnoreCase(answer.retryable, "true")) kind = Kind::kFailed;
  if (absl::EqualsIgnoreCase(answer.retryable, "false")) kind = Kind::kRefused;
  return {kind, absl::StrCat("handler error (", meaning->name, ")")};
}

}  // namespace fairlead::api
