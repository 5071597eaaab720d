//! Compiles the interface of the server that is attacked.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().compile(&["idl/hostile.idl"])
}
