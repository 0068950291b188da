# Where things are installed. On Debian and its kin libraries belong into lib/<architecture> below /usr/local, too, where
# the loader, pkg-config and CMake look for them; by itself CMake would do so below /usr only.
if(CMAKE_LIBRARY_ARCHITECTURE AND EXISTS /etc/debian_version)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE} CACHE PATH "Object code libraries")
endif()
include(GNUInstallDirs)
