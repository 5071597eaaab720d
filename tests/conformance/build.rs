//! Compiles the IDL of the tests.

fn main() {
    if let Err(error) = spandrel_build::configure().asynchronous_server(true).compile(&["idl/subject.idl"]) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
