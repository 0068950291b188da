# The warnings every target of ours is built with.
add_library(anydat_warnings INTERFACE)
target_compile_options(anydat_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wcast-align -Wunused -Woverloaded-virtual
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>)
# Flags that only mean something to C++ are noise for C.
get_target_property(_opts anydat_warnings INTERFACE_COMPILE_OPTIONS)
list(TRANSFORM _opts REPLACE "^-Wnon-virtual-dtor$" "$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>")
list(TRANSFORM _opts REPLACE "^-Woverloaded-virtual$" "$<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>")
set_target_properties(anydat_warnings PROPERTIES INTERFACE_COMPILE_OPTIONS "${_opts}")
if(ANYDAT_WERROR)
  target_compile_options(anydat_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(anydat_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
endif()
