# Test programs with GoogleTest, and their entries in ctest.

include(GoogleTest)

# Libraries whose headers DtcTestHeaders has, so that what shares them defines the same macros.
set(DTC_TEST_HEADERS_LINK DtcPlanProto fmt::fmt nlohmann_json::nlohmann_json)

# dtc_add_test(name [COMPILER] [SERIAL] [SHARDS n] sources... [LINK library...] [ENTRIES entry... | WITHOUT_ENTRIES]):
# a test program, which is the label of its entries in ctest too.
#
# Each case is an entry. With a sanitizer, where starting a program takes longer than most cases, the whole program is one
# entry, or n of them, which have its cases in turn. ENTRIES names other entries instead, for programs that take long to
# start, such as those that load MLIR: "NAME" has all cases, and "NAME=FILTER" those that the filter of GoogleTest selects.
# WITHOUT_ENTRIES leaves them to dtc_add_test_entry.
#
# COMPILER: the tests include MLIR. SERIAL: no other test runs at the same time, as it is about times.
function(dtc_add_test name)
  cmake_parse_arguments(ARG "COMPILER;SERIAL;WITHOUT_ENTRIES" "SHARDS" "LINK;ENTRIES" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  # A main of the program's own comes before that of GoogleTest.
  target_link_libraries(${name} PRIVATE ${ARG_LINK} DtcSourcePath GTest::gtest_main)
  if(ARG_COMPILER)
    dtc_use_precompiled_headers(${name} DtcCompilerTestHeaders)
  else()
    target_compile_options(${name} PRIVATE ${DTC_WARNINGS})
    target_link_libraries(${name} PRIVATE ${DTC_TEST_HEADERS_LINK})
    dtc_use_precompiled_headers(${name} DtcTestHeaders)
  endif()

  if(ARG_WITHOUT_ENTRIES)
    return()
  endif()
  if(ARG_ENTRIES)
    foreach(entry ${ARG_ENTRIES})
      string(REGEX MATCH "^([^=]+)=?(.*)$" matched "${entry}")
      set(entry ${CMAKE_MATCH_1})
      dtc_add_test_entry(${entry} ${name} FILTER "${CMAKE_MATCH_2}")
      set_tests_properties(${entry} PROPERTIES RUN_SERIAL ${ARG_SERIAL})
    endforeach()
  elseif(DTC_SANITIZE)
    set(shards 1)
    if(ARG_SHARDS)
      set(shards ${ARG_SHARDS})
    endif()
    foreach(number RANGE 1 ${shards})
      math(EXPR index "${number} - 1")
      dtc_add_test_entry(${name}.${number} ${name})
      set_tests_properties(${name}.${number} PROPERTIES RUN_SERIAL ${ARG_SERIAL}
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
    endforeach()
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300 LABELS ${name} RUN_SERIAL ${ARG_SERIAL})
  endif()
endfunction()

# dtc_add_test_entry(entry program [FILTER filter] [LAUNCHER command...]): an entry of ctest that runs a program of
# dtc_add_test, by a launcher if one is given. A program that ends with 77 is skipped.
function(dtc_add_test_entry entry program)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "FILTER" "LAUNCHER")
  set(filter)
  if(ARG_FILTER)
    set(filter "--gtest_filter=${ARG_FILTER}")
  endif()
  add_test(NAME ${entry} COMMAND ${ARG_LAUNCHER} $<TARGET_FILE:${program}> ${filter})
  set_tests_properties(${entry} PROPERTIES TIMEOUT 3600 LABELS ${program} SKIP_RETURN_CODE 77)
endfunction()
