# A room is a folder of src/: one static library, echolo_NAME, of all its .cpp files.
add_library(echolo_options INTERFACE)
target_include_directories(echolo_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(echolo_options INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wcast-align -Wunused -Woverloaded-virtual
  # What a lane computes must not depend on how the host compiler contracts expressions.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside libstdc++ and fmt at -O2 where nothing is wrong (GCC bugs 105329, 105651, 107852).
  target_compile_options(echolo_options INTERFACE
    -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized -Wno-dangling-pointer)
endif()
if(ECHOLO_ASAN)
  target_compile_options(echolo_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(echolo_options INTERFACE -fsanitize=address,undefined)
  target_sources(echolo_options INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_SOURCE_DIR}/cmake/sanitizer_options.cpp>)
endif()
if(ECHOLO_FUZZ)
  target_compile_options(echolo_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
  target_link_options(echolo_options INTERFACE -fsanitize=address,undefined)
endif()

function(echolo_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  if(sources)
    add_library(echolo_${name} STATIC ${sources})
    target_link_libraries(echolo_${name} PUBLIC echolo_options ${ROOM_DEPS})
  else()
    add_library(echolo_${name} INTERFACE)
    target_link_libraries(echolo_${name} INTERFACE echolo_options ${ROOM_DEPS})
  endif()
endfunction()

# The GoogleTest suite of one room: tests/NAME/*.cpp becomes build/tests/test_NAME, one ctest entry a test case.
function(echolo_room_tests name)
  cmake_parse_arguments(ROOM "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp)
  if(sources)
    add_executable(test_${name} ${sources})
    set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(test_${name} PRIVATE echolo_${name} ${ROOM_DEPS} GTest::gtest GTest::gtest_main)
    # Only what names these folders (or a harness that does) gets them: everything else then compiles alike in every checkout, for ccache.
    foreach(source ${sources})
      file(STRINGS ${source} names_folders REGEX "ECHOLO_(SOURCE|BINARY)_DIR|(core_harness|cli_fixture|venv_nvcc).hpp" LIMIT_COUNT 1)
      if(names_folders)
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
          ECHOLO_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ECHOLO_BINARY_DIR="${CMAKE_BINARY_DIR}")
      endif()
    endforeach()
    if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT ECHOLO_ASAN)
      target_compile_options(test_${name} PRIVATE -O1 -g0)  # tests spend their time in the rooms, not in themselves
    endif()
    add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
endfunction()
