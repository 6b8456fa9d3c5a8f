#include "api/temporal/reflection.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include "api/temporal/grpc_client_for_test.h"
#include "api/temporal/grpc_transport.h"
#include "base/wire.h"

namespace fairlead::api {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptorProto;
using testing::ElementsAre;

const std::vector<std::string> kServices = {"temporal.api.workflowservice.v1.WorkflowService"};

std::string ask(uint32_t field, std::string_view value) {
  std::string out;
  wire::Writer(&out).bytes(field, value);
  return out;
}

// The values of a repeated field inside the response's field `outer`.
std::vector<std::string> repeated(std::string_view response, uint32_t outer, uint32_t inner) {
  std::vector<std::string> values;
  wire::Reader reader(response);
  while (reader.next()) {
    if (reader.field() != outer) continue;
    wire::Reader nested(reader.bytes());
    while (nested.next()) {
      if (nested.field() == inner) values.emplace_back(nested.bytes());
    }
  }
  return values;
}

// What a client does with an answer: build each file once the files it needs are there.
const google::protobuf::FileDescriptor* build(const std::vector<std::string>& files,
                                              DescriptorPool* pool) {
  std::vector<FileDescriptorProto> protos(files.size());
  for (size_t i = 0; i < files.size(); ++i) EXPECT_TRUE(protos[i].ParseFromString(files[i]));
  for (size_t round = 0; round < protos.size(); ++round) {
    for (const FileDescriptorProto& proto : protos) {
      const bool is_ready = std::all_of(
          proto.dependency().begin(), proto.dependency().end(),
          [&](const std::string& name) { return pool->FindFileByName(name) != nullptr; });
      if (is_ready && pool->FindFileByName(proto.name()) == nullptr) pool->BuildFile(proto);
    }
  }
  return protos.empty() ? nullptr : pool->FindFileByName(protos.front().name());
}

// A client has nothing but the answer, so the answer must hold all files that the file stands on.
TEST(Reflection, SymbolComesWithEverythingItNeeds) {
  const auto files = repeated(
      answer_reflection(ask(4, "temporal.api.workflowservice.v1.WorkflowService"), kServices), 4,
      1);
  DescriptorPool pool;
  ASSERT_NE(build(files, &pool), nullptr);
  const auto* service = pool.FindServiceByName("temporal.api.workflowservice.v1.WorkflowService");
  ASSERT_NE(service, nullptr);
  EXPECT_NE(service->FindMethodByName("StartWorkflowExecution"), nullptr);
}

TEST(Reflection, HealthAndReflectionDescribeThemselves) {
  for (const char* symbol : {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                             "grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo"}) {
    DescriptorPool pool;
    EXPECT_NE(build(repeated(answer_reflection(ask(4, symbol), kServices), 4, 1), &pool), nullptr)
        << symbol;
  }
}

TEST(Reflection, FilesAndExtensionsAreFound) {
  EXPECT_FALSE(repeated(answer_reflection(ask(3, "temporal/api/common/v1/message.proto"), {}), 4, 1)
                   .empty());
  std::string extension;
  wire::Writer writer(&extension);
  writer.string(1, "google.protobuf.MethodOptions");
  writer.integer(2, 72295728);  // google.api.http
  EXPECT_FALSE(repeated(answer_reflection(ask(5, extension), {}), 4, 1).empty());
  EXPECT_FALSE(
      repeated(answer_reflection(ask(6, "google.protobuf.MethodOptions"), {}), 5, 2).empty());
}

TEST(Reflection, WhatIsMissingIsNamed) {
  EXPECT_THAT(repeated(answer_reflection(ask(4, "no.Such"), {}), 7, 2),
              ElementsAre("symbol not found: no.Such"));
  EXPECT_THAT(repeated(answer_reflection(ask(3, "no.proto"), {}), 7, 2),
              ElementsAre("file not found: no.proto"));
  EXPECT_THAT(repeated(answer_reflection("\xff\xff", {}), 7, 2),
              ElementsAre("not a ServerReflectionRequest"));
}

TEST(Reflection, ServesBothVersionsAsAStream) {
  StreamTable streams;
  add_reflection(kServices, &streams);
  auto transport = GrpcTransport::start({.port = 0}, {}, std::move(streams));
  ASSERT_TRUE(transport.ok()) << transport.status();
  TestClient client((*transport)->port());
  for (const std::string version : {"v1", "v1alpha"}) {
    TestClient::Stream stream(
        &client, "/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo");
    for (int question = 0; question < 3; ++question) {
      ASSERT_TRUE(stream.write(ask(7, "")));
      std::string response;
      ASSERT_TRUE(stream.read(&response));
      const auto entries = repeated(response, 6, 1);
      ASSERT_EQ(entries.size(), 4u);
      EXPECT_EQ(entries[0], ask(1, "temporal.api.workflowservice.v1.WorkflowService"));
      EXPECT_EQ(entries[1], ask(1, "grpc.health.v1.Health"));
    }
    stream.writes_done();
    EXPECT_TRUE(stream.finish().ok());
  }
}

}  // namespace
}  // namespace fairlead::api
