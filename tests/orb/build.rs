//! Compiles the interfaces that the tests call.

fn main() {
    if let Err(error) = spandrel_build::compile("idl/probe.idl") {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
