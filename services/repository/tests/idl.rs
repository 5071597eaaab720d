//! The IDL in this package.

/// Packages contain all that they are built of. So this one has a copy of the file.
#[test]
fn the_idl_is_that_of_the_clients() {
    assert!(spandrel::services::IDL_FILES.contains(&include_str!("../idl/InterfaceRepository.idl")));
}
