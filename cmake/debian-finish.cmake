# Run by cpack when the components are staged: what Debian wants in its packages and a plain installation does not need.
set(packages_of_components runtime:${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} dev:${CPACK_DEBIAN_DEV_PACKAGE_NAME}
  runtime2:${CPACK_DEBIAN_RUNTIME2_PACKAGE_NAME} dev2:${CPACK_DEBIAN_DEV2_PACKAGE_NAME}
  utils:${CPACK_DEBIAN_UTILS_PACKAGE_NAME})
if(CPACK_COMPONENTS_ALL MATCHES "verbs")
  list(APPEND packages_of_components verbs:${CPACK_DEBIAN_VERBS_PACKAGE_NAME})
endif()

foreach(pair IN LISTS packages_of_components)
  string(REPLACE ":" ";" pair ${pair})
  list(POP_FRONT pair component package)
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})

  # Every package says under which licence it is.
  file(MAKE_DIRECTORY ${root}/share/doc/${package})
  configure_file(${CPACK_ANYDAT_SOURCE_DIR}/LICENSE ${root}/share/doc/${package}/copyright COPYONLY)

  # The page that Debian's dapl2-utils has under the same name; man finds both.
  if(EXISTS ${root}/share/man/man5/dat.conf.5)
    file(RENAME ${root}/share/man/man5/dat.conf.5 ${root}/share/man/man5/dat.conf.5anydat)
  endif()
  file(GLOB pages ${root}/share/man/man*/*)
  if(pages)
    execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()

  # Below /usr the loader finds the library by itself.
  file(GLOB programs ${root}/bin/*)
  foreach(program IN LISTS programs)
    file(RPATH_REMOVE FILE ${program})
  endforeach()
endforeach()
