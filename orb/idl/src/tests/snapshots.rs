//! IDL files with their results: a dump of the model for valid ones, diagnostics for invalid ones.

use std::path::Path;

use spandrel_idl::{FrontEndOptions, compile};

/// The front end's output for a file.
fn outcome(folder: &str, name: &str) -> Result<String, String> {
    let file = Path::new("tests/idl").join(folder).join(name).with_extension("idl");
    match compile(&FrontEndOptions::default(), &file) {
        Ok(model) => Ok(format!("{}{}", model.dump(), model.warnings())),
        Err(diagnostics) => Err(diagnostics.render(false)),
    }
}

/// One test for each file, and one that checks that every file is tested.
macro_rules! files {
    ($folder:ident, $outcome:ident: $($name:ident)*) => {
        mod $folder {
            use super::*;

            $(
                #[test]
                fn $name() {
                    let name = stringify!($name);
                    let text = outcome(stringify!($folder), name).$outcome("the other outcome");
                    insta::assert_snapshot!(format!("{}_{name}", stringify!($folder)), text);
                }
            )*

            #[test]
            fn every_file_is_tested() {
                let folder = Path::new("tests/idl").join(stringify!($folder));
                let files = std::fs::read_dir(folder).expect("the folder is here");
                let paths = files.map(|it| it.expect("a file").path());
                let mut files_in_folder: Vec<_> = paths
                    .filter(|it| it.extension().is_some_and(|it| it == "idl"))
                    .map(|it| it.file_stem().expect("a stem").to_string_lossy().into_owned())
                    .collect();
                files_in_folder.sort();
                let mut tested = vec![$(stringify!($name).to_owned()),*];
                tested.sort();
                assert_eq!(files_in_folder, tested);
            }
        }
    };
}

files!(good, expect: annotations bank components constants corba corba_parts decimals escaped grammar identities ids interfaces recursion templates types unions values);
files!(bad, expect_err: annotations anonymous bounds collisions components constants decimals extended included inheritance kinds literals macros names oneway pragmas
    preprocessor recursion syntax templates unions values);
