#include "server/logging.h"

#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace fairlead::server {
namespace {

// %Q: the message as the inside of a JSON string. spdlog's own %v would let a quote end it.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string escaped =
        json_escape(std::string_view(message.payload.data(), message.payload.size()));
    out.append(escaped.data(), escaped.data() + escaped.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

}  // namespace

std::string json_escape(std::string_view text) {
  std::string escaped;
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') {
      escaped += '\\';
      escaped += byte;
    } else if (byte == '\n') {
      escaped += "\\n";
    } else if (static_cast<unsigned char>(byte) < 0x20) {
      escaped += absl::StrFormat("\\u%04x", static_cast<int>(byte));
    } else {
      escaped += byte;
    }
  }
  return escaped;
}

void set_up_logging(const Config::Log& log) {
  auto logger = std::make_shared<spdlog::logger>(
      "fairlead", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(spdlog::level::from_str(log.level));
  if (log.format == "json") {
    auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
    formatter->add_flag<JsonMessage>('Q').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":"%Q"})");
    logger->set_formatter(std::move(formatter));
  } else {
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  }
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace fairlead::server
