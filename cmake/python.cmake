# The Python package (python/vtwin): what a wheel carries besides its sources, and the same
# laid out in the build tree, where tests import it.
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
    return()
endif()
set(VT_TELLER "" CACHE STRING "a program of these sources that runs here, where the one built does not")
if(VT_TELLER)
    set(teller ${VT_TELLER})
else()
    set(teller $<TARGET_FILE:vtwin>)
endif()
set(VT_LICENSES "" CACHE PATH "of libraries that are linked into the program")
set(make_python ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/make_python)
file(GLOB python_sources CONFIGURE_DEPENDS python/vtwin/*.py)

if(SKBUILD)
    add_custom_command(OUTPUT flags/vtwin/_flags.py
        COMMAND ${make_python} flags - - ${teller} DEPENDS vtwin tools/make_python)
    add_custom_target(python_flags ALL DEPENDS flags/vtwin/_flags.py)
    install(PROGRAMS $<TARGET_FILE:vtwin> DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
    install(PROGRAMS $<TARGET_FILE:libvtwin> DESTINATION ${SKBUILD_PLATLIB_DIR}/vtwin/lib
        RENAME libvtwin.so COMPONENT python)
    install(FILES ${CMAKE_BINARY_DIR}/flags/vtwin/_flags.py
        DESTINATION ${SKBUILD_PLATLIB_DIR}/vtwin COMPONENT python)
    install(DIRECTORY include/vtwin DESTINATION ${SKBUILD_PLATLIB_DIR}/vtwin/include
        COMPONENT python)
    if(VT_LICENSES)
        install(DIRECTORY ${VT_LICENSES}/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses
            COMPONENT python)
    endif()
else()
    add_custom_command(OUTPUT python/vtwin/_flags.py
        COMMAND ${make_python} python $<TARGET_FILE:vtwin> $<TARGET_FILE:libvtwin>
        DEPENDS vtwin libvtwin tools/make_python ${python_sources})
    add_custom_target(python_tree ALL DEPENDS python/vtwin/_flags.py)
endif()
