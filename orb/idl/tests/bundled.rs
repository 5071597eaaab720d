//! The stubs of services in the facade are the output of this compiler.

use std::fs;
use std::path::Path;

use spandrel_idl::rust::{Options, generate};
use spandrel_idl::{FrontEndOptions, compile};

/// The IDL files, and the files of their stubs.
const BUNDLED: [(&str, &str); 2] =
    [("CosNaming.idl", "cos_naming.rs"), ("ImplementationRepository.idl", "implementation_repository.rs")];

/// Rewrites the stubs if `UPDATE_GOLDEN` is set.
#[test]
fn bundled_stubs_are_up_to_date() {
    let facade = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spandrel");
    for (idl, stubs) in BUNDLED {
        let model = match compile(&FrontEndOptions::default(), &facade.join("idl").join(idl)) {
            Ok(model) => model,
            Err(diagnostics) => panic!("{diagnostics}"),
        };
        assert_eq!(model.warnings().to_string(), "", "{idl}");
        let rust = generate(&model, &Options::new().runtime("crate::generated").expect("a path"));
        let stubs = facade.join("src/services").join(stubs);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&stubs, &rust).expect("the stubs can be written");
        }
        let bundled = fs::read_to_string(&stubs).expect("the stubs can be read");
        assert!(bundled == rust, "{} is out of date: run this test with UPDATE_GOLDEN=1", stubs.display());
    }
}
