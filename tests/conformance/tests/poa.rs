//! The portable object adapter (CORBA 3.3 Part 1, chapter 15): one test for each sentence that requires something.

#[path = "poa/managers.rs"]
mod managers;
#[path = "poa/policies.rs"]
mod policies;
