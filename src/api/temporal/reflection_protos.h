#pragma once

#include <google/protobuf/descriptor.h>

namespace fairlead::api {

// Health and reflection themselves, which we speak without generated code. With these, grpcurl can
// describe and call them like any other service.
const google::protobuf::DescriptorPool& own_descriptors();

}  // namespace fairlead::api
