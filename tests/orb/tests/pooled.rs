//! All that the other suites say, over servers whose connections have no thread of their own: the reactor's threads serve them.
//! (`spandrel_orb_tests::Server` sees from this suite's name that it is so.)

#[path = "asynchronous.rs"]
mod asynchronous;
#[path = "bidirectional.rs"]
mod bidirectional;
#[path = "calls.rs"]
mod calls;
#[path = "code_sets.rs"]
mod code_sets;
#[path = "contexts.rs"]
mod contexts;
#[path = "dispositions.rs"]
mod dispositions;
#[path = "dynamic.rs"]
mod dynamic;
#[path = "findings.rs"]
mod findings;
#[path = "forwarding.rs"]
mod forwarding;
#[path = "fragments.rs"]
mod fragments;
#[path = "hostile.rs"]
mod hostile;
#[path = "initial_references.rs"]
mod initial_references;
#[path = "interceptor_contexts.rs"]
mod interceptor_contexts;
#[path = "interceptor_outcomes.rs"]
mod interceptor_outcomes;
#[path = "poa.rs"]
mod poa;
#[path = "policies.rs"]
mod policies;
#[path = "review.rs"]
mod review;
#[path = "server_interceptors.rs"]
mod server_interceptors;
#[path = "shutdown.rs"]
mod shutdown;
#[path = "threads.rs"]
mod threads;
#[path = "unlucky.rs"]
mod unlucky;
#[path = "versions.rs"]
mod versions;
