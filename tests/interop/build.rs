//! Compiles the suite's IDL.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().compile(&["idl/interop.idl", "idl/values.idl", "idl/more_values.idl"])?;
    spandrel_build::configure().ami(true).compile(&["idl/anything.idl"])
}
