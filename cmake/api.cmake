# The Temporal API as a library of its own. Protos come from a pinned registry package, the generated
# code lies in the cache folder, and its flags are the same in every preset, so that one compilation
# (held by ccache) serves them all and no change of ours ever rebuilds it.
if(DEFINED ENV{FAIRLEAD_CACHE})
  set(FAIRLEAD_CACHE_DIR "$ENV{FAIRLEAD_CACHE}")
else()
  set(FAIRLEAD_CACHE_DIR "$ENV{HOME}/.cache/fairlead")
endif()

execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/fetch_protos
                OUTPUT_VARIABLE api_protos OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(SHA256 ${CMAKE_SOURCE_DIR}/tools/generate_api api_recipe)
string(SUBSTRING ${api_recipe} 0 8 api_recipe)
set(api_generated ${api_protos}-cpp-${api_recipe})
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/generate_api ${api_protos} ${api_generated}
                COMMAND_ERROR_IS_FATAL ANY)

file(GLOB_RECURSE api_sources ${api_generated}/*.cc)
# Objects, not an archive: the linker would drop the service descriptors that reflection serves.
add_library(temporal_api OBJECT ${api_sources})
target_include_directories(temporal_api SYSTEM PUBLIC ${api_generated})
target_link_libraries(temporal_api PUBLIC protobuf::libprotobuf)
target_compile_options(temporal_api PRIVATE -O2 -g0 -w)
set_target_properties(temporal_api PROPERTIES CXX_CLANG_TIDY "")
