# Tests with GoogleTest of the parts that know no MLIR.

include(GoogleTest)

# dtc_add_test(name [SERIAL] [SHARDS n] sources... LINK libraries...): each case is a test of ctest, with the name of the
# program as label. With a sanitizer, where starting a program takes longer than most cases, the whole program is one test,
# or n of them, which have its cases in turn. SERIAL: no other test runs at the same time, as it is about times.
function(dtc_add_test name)
  cmake_parse_arguments(ARG "SERIAL" "SHARDS" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${DTC_WARNINGS})
  dtc_use_precompiled_headers(${name} DtcTestHeaders)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} DtcTestPlans DtcSourcePath GTest::gtest_main)
  if(DTC_SANITIZE)
    set(shards 1)
    if(ARG_SHARDS)
      set(shards ${ARG_SHARDS})
    endif()
    foreach(number RANGE 1 ${shards})
      math(EXPR index "${number} - 1")
      set(test ${name}.${number})
      add_test(NAME ${test} COMMAND ${name})
      set_tests_properties(${test} PROPERTIES TIMEOUT 1500 LABELS ${name} RUN_SERIAL ${ARG_SERIAL}
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
    endforeach()
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300 LABELS ${name} RUN_SERIAL ${ARG_SERIAL})
  endif()
endfunction()
