//! Compiles the interfaces of the experiments.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().compile(&["idl/ttcp.idl", "idl/latency.idl", "idl/marshal.idl"])
}
