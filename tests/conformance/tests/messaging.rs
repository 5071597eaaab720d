//! Messaging qualities of service (CORBA 3.3 Part 1, clause 17): one test per requirement.

#[path = "messaging/timing.rs"]
mod timing;
