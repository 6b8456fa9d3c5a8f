#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace fairlead::http_load {

namespace json = boost::json;

// What came back. `status` 0: nothing did, and `error` says why.
struct Answer {
  int status = 0;
  json::object body;
  std::string error;

  bool is_ok() const { return status >= 200 && status < 300; }
};

// Asks a server over HTTP/1.1, as many questions at once as one likes: each has a connection to
// itself while it is open, as in the SDK. Everything happens in one thread, inside of `run_until`.
class Client {
 public:
  using Then = std::function<void(Answer)>;

  Client(const std::string& host, int port);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void get(const std::string& path, Then then) { ask("GET", path, "", std::move(then)); }
  void post(const std::string& path, const json::object& body, Then then) {
    ask("POST", path, json::serialize(body), std::move(then));
  }
  void after(DurationNs delay, std::function<void()> then);

  // False: the time was over first.
  bool run_until(const std::function<bool()>& is_done, DurationNs timeout);
  void run_for(DurationNs time) {
    run_until([] { return false; }, time);
  }

  // Answered so far, and those among them that were no success.
  int64_t answered() const { return answered_; }
  int64_t errors() const { return errors_; }
  const std::string& first_error() const { return first_error_; }

 private:
  class Connection;
  void ask(const char* method, const std::string& path, std::string body, Then then);
  void ended(const std::shared_ptr<Connection>& connection, Answer answer, const Then& then);

  boost::asio::io_context io_{1};
  boost::asio::ip::tcp::endpoint server_;
  std::vector<std::shared_ptr<Connection>> idle_;
  int64_t answered_ = 0;
  int64_t errors_ = 0;
  std::string first_error_;
};

}  // namespace fairlead::http_load
