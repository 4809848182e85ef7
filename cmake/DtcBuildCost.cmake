# The cost of a build: sources that are compiled together, and how much each target is optimized.

# Most of the time of a build goes into parsing headers and into templates that every source instantiates again. Sources that
# are compiled together share both: eight passes take 20 s together and 47 s one by one. Every source still includes what it
# uses: -DDTC_UNITY=OFF compiles each alone, which is also faster after a change of one source.
option(DTC_UNITY "Compile up to eight sources of a target together" ON)
set(CMAKE_UNITY_BUILD ${DTC_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# dtc_unite_cuda_sources(target source...): writes a source that includes the given .cu files, and adds it to the target. Of
# the 18 s that nvcc takes for a small one, 13 go into headers, which it reads twice and the host's compiler once more.
# CMake 3.25 unites sources of C and C++ alone.
function(dtc_unite_cuda_sources target)
  if(NOT DTC_UNITY)
    target_sources(${target} PRIVATE ${ARGN})
    return()
  endif()
  math(EXPR last "(${ARGC} - 2) / ${CMAKE_UNITY_BUILD_BATCH_SIZE}")
  foreach(group RANGE ${last})
    math(EXPR first "${group} * ${CMAKE_UNITY_BUILD_BATCH_SIZE}")
    list(SUBLIST ARGN ${first} ${CMAKE_UNITY_BUILD_BATCH_SIZE} sources)
    list(TRANSFORM sources REPLACE "^${PROJECT_SOURCE_DIR}/(.+)" "#include \"\\1\"\n")
    list(JOIN sources "" text)
    set(united "${CMAKE_CURRENT_BINARY_DIR}/${target}-${group}.cu")
    file(CONFIGURE OUTPUT "${united}" CONTENT "${text}")
    target_sources(${target} PRIVATE "${united}")
  endforeach()
endfunction()

# Most code runs once in a command, and takes two thirds of the time of -O3 to compile with -O1.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
# The level is that of the code that launches kernels, not of kernels.
set(CMAKE_CUDA_FLAGS_RELEASE "-O1 -DNDEBUG")
option(DTC_DEBUG_OPTIMIZE
  "Optimize all of a debug build; without, it compiles in three quarters of the time, and kernels of the CPU are slow" ON)
if(DTC_DEBUG_OPTIMIZE)
  set(level -O1)
else()
  set(level -O0)
endif()
# Where assertions hold, those of the standard library do too. Full debug information has several GiB.
set(CMAKE_CXX_FLAGS_DEBUG "${level} -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")

# dtc_optimize(target): optimizes code that runs in every step of training, or for every plan that is proved or simulated.
set(DTC_OPTIMIZED $<$<COMPILE_LANGUAGE:CXX>:$<IF:$<CONFIG:Debug>,-O1,-O3>>)
function(dtc_optimize target)
  target_compile_options(${target} PRIVATE ${DTC_OPTIMIZED})
endfunction()
