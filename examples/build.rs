//! Compiles the examples' interfaces.

fn main() -> Result<(), spandrel_build::Error> {
    spandrel_build::configure().compile(&[
        "bank/bank.idl",
        "mapping/mapping.idl",
        "mapping/corners.idl",
        "mapping/chapter.idl",
    ])?;
    spandrel_build::configure().pad_all().compile(&["mapping/padded.idl"])
}
