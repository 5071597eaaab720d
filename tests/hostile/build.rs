//! Compiles the IDL of the attacked server.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().compile(&["idl/hostile.idl"])
}
