//! Options of the ORB on the command line of an executable.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use crate::failure::Failure;

/// An option and its value: `-ORBName value` or `-ORBName=value`.
pub(crate) fn split_option(text: &str) -> Result<[String; 2], Failure> {
    let text = text.trim();
    let place = text.find(|letter: char| letter.is_whitespace() || letter == '=');
    match place.map(|place| (&text[..place], text[place + 1..].trim())) {
        Some((option, value)) if option.starts_with("-ORB") && !value.is_empty() => {
            Ok([option.to_owned(), value.to_owned()])
        }
        _ => Err(Failure::usage(anyhow!(
            "invalid value `{text}` for --orb: expected an option and its value, such as `-ORBMetrics yes`"
        ))),
    }
}

/// The options of the ORB for a certificate, its key and the authorities.
pub(crate) fn tls_options(files: [&Option<PathBuf>; 3]) -> Result<Vec<String>, Failure> {
    let mut args = Vec::new();
    for (option, file) in ["-ORBSSLCertificate", "-ORBSSLKey", "-ORBSSLCA"].into_iter().zip(files) {
        if let Some(file) = file {
            check_readable(file)?;
            args.extend([option.to_owned(), file.display().to_string()]);
        }
    }
    Ok(args)
}

fn check_readable(file: &Path) -> Result<(), Failure> {
    let opened = std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()));
    opened.map(drop).map_err(Failure::usage)
}
