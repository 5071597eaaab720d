//! The IDL-to-Rust mapping, row by row: `mapping/mapping.idl` over a real connection, in both byte orders.

#[path = "mapping/echo.rs"]
mod echo;
#[path = "mapping/inheritance.rs"]
mod inheritance;
#[path = "mapping/layout.rs"]
mod layout;
#[path = "mapping/mirror.rs"]
mod mirror;
#[path = "mapping/names.rs"]
mod names;
#[path = "mapping/office.rs"]
mod office;
#[path = "mapping/thing.rs"]
mod thing;
#[path = "mapping/values.rs"]
mod values;

mod idl {
    spandrel::include_idl!("mapping");
    spandrel::include_idl!("office"); // shares the definitions of mapping.idl
}

/// With explicit padding.
mod padded {
    spandrel::include_idl!("padded");
}

/// Compiled without warnings; it has no tests of its own.
mod corners {
    spandrel::include_idl!("corners");
}
