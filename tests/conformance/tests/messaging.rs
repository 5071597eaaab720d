//! Qualities of service (CORBA 3.3 Part 1, clause 17): one test for each sentence that requires something.

#[path = "messaging/timing.rs"]
mod timing;
