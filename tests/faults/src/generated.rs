//! Stubs and skeletons of the test server.

spandrel::include_idl!("ledger");
