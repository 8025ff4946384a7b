# Third-party libraries by target name. A cross build uses fmt and spdlog as headers and GoogleTest from its packaged source, so that it
# needs no packages of the other architecture.
find_package(Threads REQUIRED)
if(CMAKE_CROSSCOMPILING)
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
  add_library(spdlog::spdlog INTERFACE IMPORTED)
  if(ESPALIER_TESTS)
    add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  endif()
else()
  find_package(fmt REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(Boost 1.81 REQUIRED)  # headers only
  find_package(OpenSSL REQUIRED)
  if(ESPALIER_TESTS)
    find_package(GTest REQUIRED)
  endif()
endif()
