//! What the other suites say, over shared memory: servers listen so beside IIOP, and clients choose that because it is cheaper.
//! (`spandrel_orb_tests::Server` sees from this suite's name that it is so.)
#![cfg(target_os = "linux")]

mod over;

#[test]
fn references_say_so() {
    assert_eq!(over::scheme_in_references(), "shm");
}
