//! Runs the code shown in the documentation.

mod book;
mod chapter;
mod chat;
#[cfg(target_os = "linux")]
mod data_stream;
mod guides;
mod interceptors;
mod library;
mod mapping;
#[path = "mapping/pair.rs"]
mod pair;
mod programs;
mod settings;
mod several_files;
#[path = "chapter/shown.rs"]
mod shown;
mod values;
