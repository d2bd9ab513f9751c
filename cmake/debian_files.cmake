# What Debian wants of every package, put into each before it is packed: copyright, changelog,
# compressed manual pages. CPack includes this.
file(GLOB packages ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(package ${packages})
    get_filename_component(component ${package} NAME)
    string(TOUPPER ${component} component)
    set(doc ${package}/usr/share/doc/${CPACK_DEBIAN_${component}_PACKAGE_NAME})
    execute_process(COMMAND ${CPACK_VT_SOURCE}/packaging/debian_files ${package} ${doc}
            ${CPACK_PACKAGE_VERSION} ${CPACK_DEBIAN_${component}_PACKAGE_NAME}
            "${CPACK_PACKAGE_CONTACT}"
        COMMAND_ERROR_IS_FATAL ANY)
endforeach()
