//! Stubs and skeletons of the attacked server.

spandrel::include_idl!("hostile");
