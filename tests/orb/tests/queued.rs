//! What other suites say, over servers that read requests into a queue and run them in a fixed number of threads.
//! (`spandrel_orb_tests::Server` sees from this suite's name that it is so.)

#[path = "asynchronous.rs"]
mod asynchronous;
#[path = "calls.rs"]
mod calls;
#[path = "code_sets.rs"]
mod code_sets;
#[path = "findings.rs"]
mod findings;
#[path = "hostile.rs"]
mod hostile;
#[path = "interceptor_contexts.rs"]
mod interceptor_contexts;
#[path = "poa.rs"]
mod poa;
#[path = "policies.rs"]
mod policies;
#[path = "server_interceptors.rs"]
mod server_interceptors;
#[path = "shutdown.rs"]
mod shutdown;
#[path = "threads.rs"]
mod threads;
#[path = "unlucky.rs"]
mod unlucky;
