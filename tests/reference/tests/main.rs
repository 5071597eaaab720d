//! The reference against the marshaling engines and omniORB.

mod engines;
mod omniorb;
