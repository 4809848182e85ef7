# Builds everything with the sanitizers that DTC_SANITIZE names.

if(DTC_SANITIZE STREQUAL "address")
  # LLVM and MLIR have no type information for vptr to check. Checks of each access for null, alignment and size double the
  # time that GCC takes; the address sanitizer finds accesses through null and beyond an object by itself.
  set(flags -fsanitize=address,undefined -fno-sanitize=vptr,null,alignment,object-size)
  # LLVM's headers poison the free memory of their allocators where they see this macro, and unpoison what they hand
  # out; the installed library, which is built without, would hand out memory of the same allocators as it is.
  add_compile_options(-U__SANITIZE_ADDRESS__)
elseif(DTC_SANITIZE STREQUAL "thread")
  set(flags -fsanitize=thread)
  # Protobuf's headers give maps another layout where they see this macro than the installed library has. The standard
  # library shall see it.
  add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
elseif(DTC_SANITIZE)
  message(FATAL_ERROR "DTC_SANITIZE is \"${DTC_SANITIZE}\", expected address, thread or nothing")
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${flags}>")
add_link_options(${flags})
