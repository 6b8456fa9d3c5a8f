#include <vector>

#include "api/temporal/service_testing.h"
#include "base/random.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/message.h"

// Whatever bytes arrive, the server stands and each call is answered exactly once. Requests are
// grown at random from the API's own descriptors, so that they get past parsing and deep into the
// handlers, and some are then damaged.
namespace fairlead::api {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using testing::FakeCall;
using testing::kNow;
using testing::ServiceTest;

class Grower {
 public:
  Grower(Random& random, std::vector<std::string> words, std::vector<std::string> blobs)
      : random_(random), words_(std::move(words)), blobs_(std::move(blobs)) {}

  // Some requests are sparse and some are dense: the first get further, the second get wider.
  void grow(Message& message) {
    density_ = random_.chance(0.3) ? 0.0 : static_cast<double>(random_.below(60)) / 100;
    grow(message, 0);
  }

 private:
  void grow(Message& message, int depth) {
    const auto* descriptor = message.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const auto* field = descriptor->field(i);
      if (!random_.chance(density_)) continue;
      const uint64_t times = field->is_repeated() ? random_.below(3) : 1;
      for (uint64_t time = 0; time < times; ++time) set(message, *field, depth);
    }
  }

  void set(Message& message, const FieldDescriptor& field, int depth) {
    const auto& reflection = *message.GetReflection();
    const auto put = [&](auto add, auto set_one, auto value) {
      if (field.is_repeated()) {
        (reflection.*add)(&message, &field, value);
      } else {
        (reflection.*set_one)(&message, &field, value);
      }
    };
    using R = google::protobuf::Reflection;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth < 6) {
          grow(field.is_repeated() ? *reflection.AddMessage(&message, &field)
                                   : *reflection.MutableMessage(&message, &field),
               depth + 1);
        }
        return;
      case FieldDescriptor::CPPTYPE_STRING:
        return put(&R::AddString, &R::SetString,
                   field.type() == FieldDescriptor::TYPE_BYTES ? blob() : word());
      case FieldDescriptor::CPPTYPE_ENUM:
        return put(&R::AddEnumValue, &R::SetEnumValue, static_cast<int>(random_.below(20)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return put(&R::AddBool, &R::SetBool, random_.chance(0.5));
      case FieldDescriptor::CPPTYPE_INT32:
        return put(&R::AddInt32, &R::SetInt32, static_cast<int32_t>(number()));
      case FieldDescriptor::CPPTYPE_INT64:
        return put(&R::AddInt64, &R::SetInt64, number());
      case FieldDescriptor::CPPTYPE_UINT32:
        return put(&R::AddUInt32, &R::SetUInt32, static_cast<uint32_t>(number()));
      case FieldDescriptor::CPPTYPE_UINT64:
        return put(&R::AddUInt64, &R::SetUInt64, static_cast<uint64_t>(number()));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return put(&R::AddFloat, &R::SetFloat, static_cast<float>(number()) / 3);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&R::AddDouble, &R::SetDouble, static_cast<double>(number()) / 3);
    }
  }

  std::string word() {
    if (random_.chance(0.02)) return std::string(random_.below(3000), 'w');
    return words_[random_.below(words_.size())];
  }

  std::string blob() { return random_.chance(0.5) ? word() : blobs_[random_.below(blobs_.size())]; }

  int64_t number() {
    switch (random_.below(4)) {
      case 0:
        return static_cast<int64_t>(random_.next());
      case 1:
        return -1;
      default:
        return static_cast<int64_t>(random_.below(20));
    }
  }

  Random& random_;
  double density_ = 0;
  std::vector<std::string> words_;
  std::vector<std::string> blobs_;
};

void damage(Random& random, std::string& bytes) {
  if (bytes.empty()) return;
  if (random.chance(0.3)) bytes.resize(random.below(bytes.size()));
  for (uint64_t i = random.below(4); i > 0 && !bytes.empty(); --i) {
    bytes[random.below(bytes.size())] = static_cast<char>(random.next());
  }
}

class FuzzTest : public ServiceTest {
 protected:
  FuzzTest() {
    serve({});
    for (const char* name : {"temporal.api.workflowservice.v1.WorkflowService",
                             "temporal.api.operatorservice.v1.OperatorService"}) {
      const auto* service =
          google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
      for (int i = 0; i < service->method_count(); ++i) all.push_back(service->method(i));
    }
    serving_ = true;
    for (const auto* method : all) {
      // They would close the namespace to every start that comes after them.
      if (method->name() == "DeprecateNamespace" || method->name() == "DeleteNamespace") continue;
      const auto made = call_bytes("/" + method->service()->full_name() + "/" + method->name(), "");
      if (made->status.message.find("unknown method") == std::string::npos) built.push_back(method);
    }
    engine.workflow_polls.result = shard::WorkflowTask{.token = token()};
    engine.activity_polls.result = shard::ActivityTask{.token = token()};
    engine.completions.result->new_task = shard::WorkflowTask{.token = token()};
    engine.histories.result = shard::HistoryPage{.run_id = testing::kRunId, .is_open = true};
  }

  // The answer must be one, and if it is a success it must be a message of the right type.
  void expect_one_answer(const MethodDescriptor& method, const std::string& body, TimeNs deadline) {
    auto made = std::make_shared<FakeCall>(
        "/" + method.service()->full_name() + "/" + method.name(), body, deadline);
    (*methods.find(made->method()))(made);
    ASSERT_EQ(made->replies, 1) << method.name();
    if (made->gone) made->gone();
    if (made->delivered) made->delivered(false);
    if (made->status.code != 0) {
      ASSERT_FALSE(made->status.message.empty()) << method.name();
      return;
    }
    std::unique_ptr<Message> response(google::protobuf::MessageFactory::generated_factory()
                                          ->GetPrototype(method.output_type())
                                          ->New());
    ASSERT_TRUE(response->ParseFromString(made->answer)) << method.name();
  }

  // What hardly any request gets anywhere without.
  void fill_essentials(Message& request) {
    const auto& reflection = *request.GetReflection();
    const auto fill = [&](const char* name, const char* inner, const std::string& value) {
      const auto* field = request.GetDescriptor()->FindFieldByName(name);
      if (field == nullptr || field->is_repeated()) return;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        reflection.SetString(&request, field, value);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Message& message = *reflection.MutableMessage(&request, field);
        const auto* part = message.GetDescriptor()->FindFieldByName(inner);
        if (part != nullptr) message.GetReflection()->SetString(&message, part, value);
      }
    };
    fill("namespace", "", "default");
    fill("task_token", "", encode_token(token()));
    fill("workflow_id", "", "order-1");
    fill("workflow_type", "name", "Order");
    fill("task_queue", "name", "q");
    fill("execution", "workflow_id", "order-1");
    fill("workflow_execution", "workflow_id", "order-1");
  }

  std::vector<const MethodDescriptor*> all;
  std::vector<const MethodDescriptor*> built;
};

TEST_F(FuzzTest, GrownAndDamagedRequestsAreAnsweredOnce) {
  Random random(20'261'115);
  Grower grower(random,
                {"", "default", "order-1", "q", "1", "json/plain", "encoding", "\"x\"", "null",
                 "[[", "BuildIds", "WorkflowId", testing::kRunId, testing::kRunId},
                {encode_history_token({testing::kRunId, 3, true}), encode_token(token()),
                 encode_query_token("id-of-default", "q")});
  for (int round = 0; round < 1500; ++round) {
    for (const auto* method : built) {
      std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                           ->GetPrototype(method->input_type())
                                           ->New());
      grower.grow(*request);
      if (random.chance(0.7)) fill_essentials(*request);
      std::string bytes = request->SerializeAsString();
      if (random.chance(0.5)) damage(random, bytes);
      expect_one_answer(*method, bytes, random.chance(0.1) ? kNow : kNow + 70 * kSecond);
      if (HasFatalFailure()) return;
    }
  }
  // Random requests that never get through would prove little.
  EXPECT_GT(engine.asked, 1000);
  EXPECT_GT(engine.starts.requests.size(), 0u);
  EXPECT_GT(engine.completions.requests.size(), 0u);
  EXPECT_GT(engine.workflow_polls.requests.size(), 0u);
  EXPECT_GT(engine.histories.requests.size(), 0u);
  EXPECT_GT(engine.described_queues.requests.size(), 0u);
  EXPECT_GT(engine.rule_changes.requests.size(), 0u);
  // What gets through the checks can be done.
  for (auto& asked : engine.rule_changes.requests) {
    model::QueueRules rules;
    EXPECT_TRUE(asked.change(rules, kNow).ok());
  }
}

TEST_F(FuzzTest, NoiseIsAnsweredOnce) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    for (const auto* method : all) {
      std::string bytes(random.below(64), '\0');
      for (char& byte : bytes) byte = static_cast<char>(random.next());
      expect_one_answer(*method, bytes, kNever);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace fairlead::api
