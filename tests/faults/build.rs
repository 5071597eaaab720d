//! Compiles the IDL of the test server.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().asynchronous_server(true).ami(true).compile(&["idl/ledger.idl"])
}
