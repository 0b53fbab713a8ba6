# Codecs and SIMD, from the system's packages. What is missing is named with the command that installs it.
function(cutwater_need FOUND WHAT PACKAGE)
  if(NOT ${FOUND})
    message(FATAL_ERROR "${WHAT} was not found. On Debian: apt-get install ${PACKAGE}")
  endif()
endfunction()

find_package(Threads REQUIRED)
find_package(JPEG)
cutwater_need(JPEG_FOUND "libjpeg-turbo" libjpeg-dev)
find_package(ZLIB)
cutwater_need(ZLIB_FOUND "zlib" zlib1g-dev)
find_path(WEBP_INCLUDE_DIR webp/demux.h)
find_library(WEBP_LIBRARY webp)
find_library(WEBPDEMUX_LIBRARY webpdemux)
cutwater_need(WEBPDEMUX_LIBRARY "libwebp (with libwebpdemux)" libwebp-dev)

find_path(HWY_INCLUDE_DIR hwy/highway.h)
find_library(HWY_LIBRARY hwy)
cutwater_need(HWY_LIBRARY "Highway" libhwy-dev)

find_path(XXHASH_INCLUDE_DIR xxhash.h)
find_library(XXHASH_LIBRARY xxhash)
cutwater_need(XXHASH_LIBRARY "xxHash" libxxhash-dev)
