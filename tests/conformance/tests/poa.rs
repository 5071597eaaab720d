//! The portable object adapter (CORBA 3.3 Part 1, chapter 15): one test per requirement.

#[path = "poa/activation.rs"]
mod activation;
#[path = "poa/adapter_activators.rs"]
mod adapter_activators;
#[path = "poa/conversions.rs"]
mod conversions;
#[path = "poa/creation.rs"]
mod creation;
#[path = "poa/current.rs"]
mod current;
#[path = "poa/destruction.rs"]
mod destruction;
#[path = "poa/managers.rs"]
mod managers;
#[path = "poa/policies.rs"]
mod policies;
#[path = "poa/references.rs"]
mod references;
#[path = "poa/requests_during_destruction.rs"]
mod requests_during_destruction;
#[path = "poa/servant_activators.rs"]
mod servant_activators;
#[path = "poa/servant_locators.rs"]
mod servant_locators;
#[path = "poa/servant_managers.rs"]
mod servant_managers;
#[path = "poa/threads.rs"]
mod threads;
