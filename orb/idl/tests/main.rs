//! The IDL front end: model, diagnostics, hostile sources.

mod hostile;
mod json;
mod model;
mod snapshots;
