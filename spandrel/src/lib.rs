//! Distribution middleware in safe Rust: a CORBA object request broker on a toolkit of network components.
