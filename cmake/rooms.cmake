# Flags for code that we wrote, and the helper that makes a room of src/ into a library plus its tests.
add_library(fairlead_options INTERFACE)
target_compile_options(fairlead_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-unused-parameter
                                                  -Wno-missing-field-initializers -Werror
                                                  $<$<CONFIG:Debug>:-O1>)
target_include_directories(fairlead_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
if(FAIRLEAD_SANITIZE)
  target_compile_options(fairlead_options INTERFACE -fsanitize=${FAIRLEAD_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(fairlead_options INTERFACE -fsanitize=${FAIRLEAD_SANITIZE})
endif()

# Every unit test and nothing else: what a sanitizer build needs.
add_custom_target(unit_tests)

# fairlead_room(<folder> [PROTOS …] [DEPENDS …] [PRECOMPILE …])
#
# Makes fl_<folder> from src/<folder>/*.cc, and <folder>_test / <folder>_bench from the *_test.cc and
# *_bench.cc beside them. Slashes become underscores. The headers to precompile are those of others
# that most files of the room need and that take longer to read than the room itself.
function(fairlead_room folder)
  cmake_parse_arguments(ROOM "" "" "PROTOS;DEPENDS;PRECOMPILE" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$|/main\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")

  list(TRANSFORM ROOM_PROTOS PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE protos)
  foreach(proto ${ROOM_PROTOS})
    string(REGEX REPLACE "^src/(.*)\\.proto$" "\\1" stem ${proto})
    set(base ${CMAKE_BINARY_DIR}/generated/${stem})
    add_custom_command(
      OUTPUT ${base}.pb.cc ${base}.pb.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
      COMMAND protobuf::protoc -I${CMAKE_SOURCE_DIR}/src --cpp_out=${CMAKE_BINARY_DIR}/generated
              ${CMAKE_SOURCE_DIR}/${proto}
      DEPENDS ${protos})
    list(APPEND sources ${base}.pb.cc)
    set_source_files_properties(${base}.pb.cc PROPERTIES COMPILE_OPTIONS "-w")
  endforeach()

  if(sources)
    add_library(fl_${name} STATIC ${sources})
    target_link_libraries(fl_${name} PUBLIC ${ROOM_DEPENDS} PRIVATE fairlead_options)
    target_include_directories(fl_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_include_directories(fl_${name} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
  else()
    add_library(fl_${name} INTERFACE)
    target_link_libraries(fl_${name} INTERFACE ${ROOM_DEPENDS})
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE fl_${name} fairlead_options GTest::gtest GTest::gmock GTest::gtest_main)
    add_test(NAME unit.${name} COMMAND ${name}_test)
    add_dependencies(unit_tests ${name}_test)
  endif()
  foreach(target fl_${name} ${name}_test)
    if(ROOM_PRECOMPILE AND TARGET ${target})
      target_precompile_headers(${target} PRIVATE ${ROOM_PRECOMPILE})
      # Without the time of the headers in it, it comes out the same each time, and ccache finds what was
      # compiled with it before in a folder of this path. (In another folder it is another one: it holds paths.)
      target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)
    endif()
  endforeach()
  if(benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE fl_${name} fairlead_options benchmark::benchmark_main)
  endif()
endfunction()
