//! Federation: rules, and queries over links.

mod follow;
mod linked;
mod links;
mod recipe;
mod requests;
mod rules;
