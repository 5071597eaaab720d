//! Runs the code shown in the documentation.

mod chapter;
mod chat;
mod interceptors;
mod mapping;
mod misuse;
#[path = "mapping/pair.rs"]
mod pair;
mod programs;
mod settings;
#[path = "chapter/shown.rs"]
mod shown;
mod values;
