//! Stubs and skeletons of what is lost.

spandrel::include_idl!("ledger");
