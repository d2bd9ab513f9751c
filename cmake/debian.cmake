# Debian packages by CPack: vtwin (program, man pages, documents), libvtwin0 and libvtwin-dev.
# tools/deb builds them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vtwin)
# Who packages names themselves, as Debian's tools ask: $DEBFULLNAME, $DEBEMAIL.
set(VT_PACKAGER "vtwin packagers <root@localhost>" CACHE STRING "Name <address> of who packages")
set(CPACK_PACKAGE_CONTACT ${VT_PACKAGER})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GPU-free twin of a vLLM serving engine")
set(CPACK_PACKAGE_DESCRIPTION "Predicts how vLLM serves a load, without a GPU: latencies and throughput
of one engine or of a fleet, the highest load within limits, the settings
that bear most. Serves the OpenAI API and vLLM's engine protocol with the
timing of a real engine.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library headers)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME vtwin)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libvtwin${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_HEADERS_PACKAGE_NAME libvtwin-dev)
set(CPACK_DEBIAN_HEADERS_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_HEADERS_PACKAGE_DEPENDS "libvtwin${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}-1)")
# The synopsis is CPack's, the same for all.
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}
.
This is the library for programs of your own.")
set(CPACK_COMPONENT_HEADERS_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}
.
These are the headers for programs of your own.")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)
set(CPACK_VT_SOURCE ${CMAKE_SOURCE_DIR})
file(WRITE ${CMAKE_BINARY_DIR}/debian/shlibs
    "libvtwin ${PROJECT_VERSION_MAJOR} libvtwin${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})\n")
file(WRITE ${CMAKE_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/shlibs
    ${CMAKE_BINARY_DIR}/debian/triggers)
include(CPack)
