//! Compiles the examples' interfaces.

fn main() {
    for idl in ["bank/bank.idl", "mapping/mapping.idl", "mapping/corners.idl"] {
        if let Err(error) = spandrel_build::compile(idl) {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
