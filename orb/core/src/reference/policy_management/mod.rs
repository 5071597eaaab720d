//! Management of the client's policies: those of the ORB, the thread and the reference, and the policies in force
//! for a call (CORBA 3.3 Part 1, 8.9). The policies themselves are in `policy`.

mod binding;
mod call_policies;
mod current;
mod earliest_delivery;
mod in_force;
mod manager;
mod reference_policies;

pub use binding::{BindingPolicies, BoundCall, CallerState};
pub(crate) use call_policies::look_policies_up;
pub use current::PolicyCurrent;
pub use manager::PolicyManager;
pub use reference_policies::ReferencePolicies;
