//! DynAny over values of every type.

mod common;
mod constructed;
mod json;
mod received;
mod shared;
mod support;
mod text;
