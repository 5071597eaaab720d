//! Compiles the interface of the call with an asynchronous servant.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().asynchronous_server(true).compile(&["../../tools/lab/idl/latency.idl"])
}
