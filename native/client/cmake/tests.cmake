# The tests beside the code, against a learner in the same process.

enable_testing()
if(NOT TARGET kubebeast_proto)
  include("${native}/cmake/proto.cmake")
endif()

add_executable(kubebeast_client_tests ${client_tests} testing/play_in_c.c)
target_include_directories(kubebeast_client_tests PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_link_libraries(kubebeast_client_tests PRIVATE kubebeast_client_objects kubebeast_proto kubebeast_warnings
                      GTest::gtest_main)
set_target_properties(kubebeast_client_tests PROPERTIES UNITY_BUILD OFF C_STANDARD 11 C_STANDARD_REQUIRED ON
                      C_EXTENSIONS OFF)
target_precompile_headers(kubebeast_client_tests PRIVATE
                          "$<$<COMPILE_LANGUAGE:CXX>:<grpcpp/grpcpp.h$<ANGLE-R>>"
                          "$<$<COMPILE_LANGUAGE:CXX>:<gtest/gtest.h$<ANGLE-R>>")
target_compile_options(kubebeast_client_tests PRIVATE $<IF:$<CONFIG:Release>,-O1,-O0>)

set(num_shards 4)
math(EXPR last_shard "${num_shards} - 1")
foreach(shard RANGE ${last_shard})
  add_test(NAME kubebeast_client_tests_${shard} COMMAND kubebeast_client_tests)
  set_tests_properties(
    kubebeast_client_tests_${shard}
    PROPERTIES
      TIMEOUT 300
      ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${num_shards};GTEST_SHARD_INDEX=${shard};TSAN_OPTIONS=ignore_noninstrumented_modules=1 suppressions=${native}/tsan.supp"
  )
endforeach()
