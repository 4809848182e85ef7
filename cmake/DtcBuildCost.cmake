# What a build costs: sources that are compiled together, and how much each target is optimized.

# Most of the time of a build goes into parsing headers and into templates that every source instantiates again. Sources that
# are compiled together share both: eight passes take 20 s together and 47 s one by one. Every source still includes what it
# uses: -DDTC_UNITY=OFF compiles each alone, which is also faster after a change of one source.
option(DTC_UNITY "Compile up to eight sources of a target together" ON)
set(CMAKE_UNITY_BUILD ${DTC_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# Most code runs once in a command, and takes two thirds of the time of -O3 to compile with -O1.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
# The level is that of the code that launches kernels, not of kernels.
set(CMAKE_CUDA_FLAGS_RELEASE "-O1 -DNDEBUG")

# dtc_optimize(target): optimizes code that runs in every step of training, or for every plan that is proved or simulated.
set(DTC_OPTIMIZED $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-O3>)
function(dtc_optimize target)
  target_compile_options(${target} PRIVATE ${DTC_OPTIMIZED})
endfunction()
