//! The pages of the book (`docs`): their links, listings and commands.

#[cfg(unix)]
mod commands;
mod links;
mod listings;
mod options;
mod page;
