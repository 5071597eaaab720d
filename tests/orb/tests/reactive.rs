//! What other suites say that no slow servant is needed for, over servers that do everything in one thread.
//! (`spandrel_orb_tests::Server` sees from this suite's name that it is so.)

#[path = "calls.rs"]
mod calls;
#[path = "code_sets.rs"]
mod code_sets;
#[path = "hostile.rs"]
mod hostile;
#[path = "unlucky.rs"]
mod unlucky;
