# Finds what attention by cuDNN is built with: cuDNN's headers, and cudnn-frontend, a library of headers that builds
# cuDNN's graphs. DTC_CUDNN_FOUND says whether it is built; cuDNN itself is loaded at run time.

set(DTC_CUDNN AUTO CACHE STRING "Build attention by cuDNN: ON, OFF, or AUTO (where its headers and cudnn-frontend are found)")
set_property(CACHE DTC_CUDNN PROPERTY STRINGS AUTO ON OFF)

# dtc_read_cudnn_version(HEADER PREFIX VARIABLE): the version MAJOR.MINOR that HEADER defines by macros that begin with PREFIX;
# empty if it defines none.
function(dtc_read_cudnn_version header prefix variable)
  set(version "")
  if(EXISTS "${header}")
    file(READ "${header}" text)
    if(text MATCHES "#define ${prefix}_MAJOR[A-Z_]* +([0-9]+)")
      set(version "${CMAKE_MATCH_1}")
    endif()
    if(text MATCHES "#define ${prefix}_MINOR[A-Z_]* +([0-9]+)")
      string(APPEND version ".${CMAKE_MATCH_1}")
    endif()
  endif()
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

set(DTC_CUDNN_FOUND OFF)
if(NOT DTC_CUDNN MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "DTC_CUDNN is \"${DTC_CUDNN}\", expected AUTO, ON or OFF")
elseif(NOT DTC_CUDNN STREQUAL "OFF" AND DTC_CUDA_FOUND)
  find_path(DTC_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
    DOC "The folder of cudnn.h")
  find_path(DTC_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS "${PROJECT_SOURCE_DIR}/build/python/include"
    DOC "The folder of cudnn_frontend.h")
  dtc_read_cudnn_version("${DTC_CUDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN cudnn)
  dtc_read_cudnn_version("${DTC_CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h" CUDNN_FRONTEND frontend)
  if(NOT DTC_CUDNN_INCLUDE_DIR)
    set(reason "no cudnn.h with the CUDA toolkit; -DDTC_CUDNN_INCLUDE_DIR names its folder")
  # With an older one cudnn-frontend pads the keys of a backward pass to multiples of 128.
  elseif(NOT cudnn VERSION_GREATER_EQUAL 9.16)
    set(reason "cuDNN \"${cudnn}\" in ${DTC_CUDNN_INCLUDE_DIR}, expected 9.16 or newer")
  elseif(NOT DTC_CUDNN_FRONTEND_INCLUDE_DIR)
    set(reason "no cudnn_frontend.h; scripts/install-dependencies.sh installs it, -DDTC_CUDNN_FRONTEND_INCLUDE_DIR names its folder")
  elseif(NOT frontend VERSION_GREATER_EQUAL 1.18)
    set(reason "cudnn-frontend \"${frontend}\" in ${DTC_CUDNN_FRONTEND_INCLUDE_DIR}, expected 1.18 or newer")
  else()
    set(DTC_CUDNN_FOUND ON)
    message(STATUS "cuDNN: ${DTC_CUDNN_INCLUDE_DIR}/cudnn.h (version ${cudnn}), cudnn-frontend ${frontend} in ${DTC_CUDNN_FRONTEND_INCLUDE_DIR}")
  endif()
  if(NOT DTC_CUDNN_FOUND AND DTC_CUDNN STREQUAL "ON")
    message(FATAL_ERROR "DTC_CUDNN is ON, but there is ${reason}")
  elseif(NOT DTC_CUDNN_FOUND)
    message(STATUS "cuDNN: not built, there is ${reason}")
  endif()
elseif(DTC_CUDNN STREQUAL "ON")
  message(FATAL_ERROR "DTC_CUDNN is ON, but the backend of NVIDIA GPUs, which it belongs to, is not built (DTC_CUDA)")
endif()

# dtc_add_cudnn_frontend_objects(name sources...): an object library of sources that include cudnn_frontend.h. That needs
# CUDA's own headers; the functions of CUDA and cuDNN that it calls may nevertheless be those of the stand-in
# (test/standin/cuda), whose include folder must not come to such a library.
function(dtc_add_cudnn_frontend_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_compile_options(${name} PRIVATE ${DTC_WARNINGS})
  target_include_directories(${name} SYSTEM PRIVATE
    "${DTC_CUDNN_FRONTEND_INCLUDE_DIR}" "${DTC_CUDNN_INCLUDE_DIR}" ${CUDAToolkit_INCLUDE_DIRS})
endfunction()
