//! Helpers of the conformance tests: a server with a client, and servants whose upcalls can be blocked.
//!
//! A test is named after the requirement that it checks, and cites the clause. Clauses are those of CORBA 3.3
//! Part 1 unless another document is named.

#[allow(missing_docs, missing_debug_implementations, dead_code, reason = "generated")]
pub mod idl {
    spandrel::include_idl!("subject");
}

pub mod managers;
pub mod support;
