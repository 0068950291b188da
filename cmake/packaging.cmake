# How others find the installed library (pkg-config, find_package), and Debian packages of it.
#
# Components: runtime (libdat.so.1), dev (headers, the name for the linker, manual of the calls, examples), runtime2 and
# dev2 (the same of libdat2.so.2), utils (the tools and what their users read) and, where it was built, verbs (the module
# for RDMA devices).
#
# "dat" and "dat2" are found under the version of the interface that they implement, since that is what programs ask
# for; the project's own version stands beside it as anydat_version.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
include(CMakePackageConfigHelpers)
foreach(library dat dat2)
  string(REPLACE dat dev component ${library})
  get_target_property(interface_version ${library} VERSION)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/${library})
  set(generated ${PROJECT_BINARY_DIR}/cmake/${library})
  configure_file(cmake/dat.pc.in ${generated}.pc @ONLY)
  install(FILES ${generated}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
  configure_file(cmake/dat-config.cmake.in ${generated}-config.cmake @ONLY)
  write_basic_package_version_file(${generated}-config-version.cmake
    VERSION ${interface_version} COMPATIBILITY SameMajorVersion)
  install(FILES ${generated}-config.cmake ${generated}-config-version.cmake DESTINATION ${package_dir}
    COMPONENT ${component})
  install(EXPORT ${library} NAMESPACE ${library}:: FILE ${library}-targets.cmake DESTINATION ${package_dir}
    COMPONENT ${component})
endforeach()

install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT dev)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT dev
  FILES_MATCHING PATTERN "*.md" PATTERN spec EXCLUDE)

# ---- Debian packages: cpack -G DEB ----
#
# Debian's own packages implement version 2.0 of DAT: libdapl2 (libdat2.so.2 and /etc/dat.conf), libdapl-dev
# (include/dat2) and dapl2-utils. The first two have to go where ours of version 2.0 come, and the programs of the third
# run on ours; the packages of version 1.2 have nothing in common with them. The manual page dat.conf(5), which
# dapl2-utils has as well, gets a suffix (cmake/debian-finish.cmake). /etc/dat.conf is in none of ours: libdapl2's stays
# behind as a file of the administrator's when that goes, and is read by both libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME anydat)
set(CPACK_PACKAGE_CONTACT "the anydat authors <anydat@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_COMPONENTS_ALL runtime dev runtime2 dev2 utils)
if(TARGET anydat_verbs)
  list(APPEND CPACK_COMPONENTS_ALL verbs)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian-finish.cmake)
set(CPACK_ANYDAT_SOURCE_DIR ${PROJECT_SOURCE_DIR})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)
set(same_version "(= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libdat1-anydat)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_PROVIDES libdat1)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONFLICTS libdat1)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_REPLACES libdat1)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS anydat-verbs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "This package contains libdat.so.1. Programs that are linked with it exchange
messages with other processes of the host, with shared receive queues as the
standard defines them. It needs no RDMA hardware, no kernel module and no
configuration.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libdat-anydat-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libdat1-anydat ${same_version}")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS anydat-utils)
set(CPACK_DEBIAN_DEV_PACKAGE_PROVIDES libdat-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_CONFLICTS libdat-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_REPLACES libdat-dev)
set(CPACK_DEBIAN_DEV_DESCRIPTION "This package contains what it takes to build programs that include
<dat/udat.h> and are linked with -ldat: headers, a manual page for each call,
examples, and files for pkg-config and CMake.")

set(CPACK_DEBIAN_RUNTIME2_PACKAGE_NAME libdat2-anydat)
set(CPACK_DEBIAN_RUNTIME2_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME2_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME2_PACKAGE_PROVIDES libdapl2)
set(CPACK_DEBIAN_RUNTIME2_PACKAGE_CONFLICTS libdapl2)
set(CPACK_DEBIAN_RUNTIME2_PACKAGE_REPLACES libdapl2)
set(CPACK_DEBIAN_RUNTIME2_PACKAGE_SUGGESTS anydat-verbs)
set(CPACK_DEBIAN_RUNTIME2_DESCRIPTION "This package contains libdat2.so.2, for programs of uDAPL 2.0: they exchange
messages with other processes and hosts as those of libdat.so.1 do, and with
those. It needs no RDMA hardware, no kernel module and no configuration.")

set(CPACK_DEBIAN_DEV2_PACKAGE_NAME libdat2-anydat-dev)
set(CPACK_DEBIAN_DEV2_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV2_PACKAGE_DEPENDS "libdat2-anydat ${same_version}")
set(CPACK_DEBIAN_DEV2_PACKAGE_SUGGESTS "anydat-utils, libdat-anydat-dev")
set(CPACK_DEBIAN_DEV2_PACKAGE_PROVIDES libdapl-dev)
set(CPACK_DEBIAN_DEV2_PACKAGE_CONFLICTS libdapl-dev)
set(CPACK_DEBIAN_DEV2_PACKAGE_REPLACES libdapl-dev)
set(CPACK_DEBIAN_DEV2_DESCRIPTION "This package contains what it takes to build programs that include
<dat2/udat.h> and are linked with -ldat2: headers, and files for pkg-config and
CMake. The manual pages are in libdat-anydat-dev.")

set(CPACK_DEBIAN_UTILS_PACKAGE_NAME anydat-utils)
set(CPACK_DEBIAN_UTILS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_UTILS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_UTILS_PACKAGE_DEPENDS "libdat1-anydat ${same_version}")
set(CPACK_DEBIAN_UTILS_DESCRIPTION "This package contains tools: datinfo lists adapters and what they offer,
datping checks that two processes reach each other, datperf measures latency,
bandwidth and message rate.")

set(CPACK_DEBIAN_VERBS_PACKAGE_NAME anydat-verbs)
set(CPACK_DEBIAN_VERBS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_VERBS_PACKAGE_SHLIBDEPS ON)
# Which driver a device needs is not to be seen in the module.
set(CPACK_DEBIAN_VERBS_PACKAGE_DEPENDS "libdat1-anydat ${same_version}, ibverbs-providers")
set(CPACK_DEBIAN_VERBS_DESCRIPTION "This package contains the module by which libdat.so.1 uses RDMA devices:
InfiniBand, RoCE, iWARP, and the kernel's soft-RoCE and soft-iWARP. With it
the adapters named verbs-DEVICE can be opened.")

include(CPack)
