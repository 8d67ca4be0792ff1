# rlx_library(NAME TAG WHAT OBJECTS): build/lib/librlx_NAME.a out of an object library, as one relocated object whose only global symbol is
# rlx_backend_NAME, and cgo/NAME/static_hash_gen.go, which tells the build cache of Go that the library has changed; TAG is its build
# tag, and `make WHAT` makes it.
function(rlx_library name tag what objects)
  set(lib ${PROJECT_SOURCE_DIR}/build/lib/librlx_${name}.a)
  set(gofile ${PROJECT_SOURCE_DIR}/cgo/${name}/static_hash_gen.go)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/rlx_${name}.o)
  if(APPLE)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/exports "_rlx_backend_${name}\n")
    set(localize COMMAND ${CMAKE_LINKER} -r -exported_symbols_list ${CMAKE_CURRENT_BINARY_DIR}/exports -o ${object} $<TARGET_OBJECTS:${objects}>)
  else()
    set(localize COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${object} $<TARGET_OBJECTS:${objects}>
                 COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=rlx_backend_${name} ${object})
  endif()
  set(hash ${PROJECT_SOURCE_DIR}/csrc/library_hash.cmake)
  add_custom_command(
    OUTPUT ${lib} ${gofile}
    ${localize}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_SOURCE_DIR}/build/lib
    COMMAND ${CMAKE_COMMAND} -E rm -f ${lib}.new
    COMMAND ${CMAKE_AR} rcs ${lib}.new ${object}
    COMMAND ${CMAKE_COMMAND} -E rename ${lib}.new ${lib}
    COMMAND ${CMAKE_COMMAND} -DLIB=${lib} -DOUT=${gofile} -DPACKAGE=${name} -DTAG=${tag} -DWHAT=${what} -P ${hash}
    DEPENDS ${objects} $<TARGET_OBJECTS:${objects}> ${hash}
    COMMAND_EXPAND_LISTS
    VERBATIM)
  add_custom_target(rlx_${name} ALL DEPENDS ${lib} ${gofile})
  install(FILES ${lib} DESTINATION lib)
endfunction()
