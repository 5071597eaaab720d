//! The marshaling engines against each other, the reference, and omniORB.

mod engines;
mod omniorb;
mod reference;
