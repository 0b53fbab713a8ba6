# cutwater_module(NAME <name> SOURCES … DEPS … LIBS …): one folder, one library.
# DEPS are modules and mirror the layer table of ARCHITECTURE.md; LIBS are outside libraries, PRIVATE:
# no header of ours shows them.
function(cutwater_module)
  cmake_parse_arguments(M "" "NAME" "SOURCES;DEPS;LIBS" ${ARGN})
  add_library(cutwater_${M_NAME} OBJECT ${M_SOURCES})
  target_include_directories(cutwater_${M_NAME} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                       ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(cutwater_${M_NAME} PRIVATE cutwater_warnings ${M_LIBS})
  foreach(dep ${M_DEPS})
    target_link_libraries(cutwater_${M_NAME} PUBLIC cutwater_${dep})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY CUTWATER_MODULES cutwater_${M_NAME})
  set_property(GLOBAL APPEND PROPERTY CUTWATER_LIBS ${M_LIBS})
endfunction()
