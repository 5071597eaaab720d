//! The IDL front end: model, diagnostics, hostile sources.

mod bundled;
mod hostile;
mod json;
mod model;
mod snapshots;
