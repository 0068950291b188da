# What nearly every source includes takes a third to two thirds of the time of compiling one. A cache of compilations does
# without, since it would find nothing again.
#
# anydat_precompile(TARGET HEADER...): headers of the system and of libraries, named as in #include <...>.
set(ANYDAT_STANDARD_HEADERS algorithm array atomic bit chrono cstring functional list map memory new optional random span
  string thread unordered_map utility vector fmt/format.h)
function(anydat_precompile name)
  get_target_property(sources ${name} SOURCES)
  list(LENGTH sources count)
  if(count GREATER 8 AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
    target_precompile_headers(${name} PRIVATE ${headers})
  endif()
endfunction()

# anydat_in_few_pieces(TARGET): compiles several sources as one, which takes less than half the time since they instantiate the
# same templates. For tests: the code of the library shall not depend on how it is built. Names of one source are therefore
# names in its neighbours, which locals there may hide. Who works on tests, and has a cache of compilations, wants sources apart,
# so that a change costs one of them; who builds all to run all wants the whole soonest (ANYDAT_TESTS_APART).
function(anydat_in_few_pieces name)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER OR NOT ANYDAT_TESTS_APART)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8
      UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC diagnostic ignored \"-Wshadow\"")
  endif()
endfunction()
