//! What the conformance tests have in common: a server, a client of it, and servants whose upcalls can be held.
//!
//! A test is named after the sentence that it tries, and cites its clause. The clauses are those of CORBA 3.3 Part 1 unless another is
//! named.

#[allow(missing_docs, missing_debug_implementations, dead_code, reason = "generated")]
pub mod idl {
    spandrel::include_idl!("subject");
}

pub mod managers;
pub mod support;
