//! Stubs and skeletons of what is attacked.

spandrel::include_idl!("hostile");
