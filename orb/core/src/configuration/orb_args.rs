//! The options of an ORB for programs that read their command line with `clap` (feature `clap`).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{InitError, OrbBuilder};

const HEADING: &str = "Options of the ORB";

/// The options of an ORB, and the files of TLS, as arguments of a program: `#[command(flatten)]` adds them.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod options { pub use spandrel_orb::*; } }
/// use clap::Parser;
/// use spandrel::{Orb, options::OrbArgs};
///
/// #[derive(Parser)]
/// struct Args {
///     #[command(flatten)]
///     orb: OrbArgs,
/// }
///
/// let args = Args::parse_from(["program", "--orb", "-ORBRequestTimeout 500"]);
/// let orb = args.orb.apply(Orb::builder())?.build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OrbArgs {
    /// An option of the ORB and its value, such as '-ORBMetrics yes'; may be given more than once ('spandrel options'
    /// lists them)
    #[arg(long = "orb", global = true, value_name = "OPTION", allow_hyphen_values = true, value_parser = split,
        help_heading = HEADING)]
    options: Vec<[String; 2]>,
    /// TLS: the certificate of this program, and those of intermediate authorities (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "key", help_heading = HEADING)]
    cert: Option<PathBuf>,
    /// TLS: the private key of the certificate (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "cert", help_heading = HEADING)]
    key: Option<PathBuf>,
    /// TLS: the authorities of the peers' certificates (PEM). A service requires certificates of its clients then
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    ca: Option<PathBuf>,
}

/// The reason why arguments configure no ORB.
#[derive(thiserror::Error)]
pub enum OrbArgsError {
    /// A file of TLS cannot be read.
    #[error("cannot read {}", file.display())]
    Unreadable {
        /// The path as it was given.
        file: PathBuf,
        /// The reason why the system did not open it.
        #[source]
        error: io::Error,
    },
    /// The ORB has no such option, or the option does not take the value.
    #[error("cannot use --orb")]
    Option(#[from] InitError),
}
spandrel_error::debug_as_report!(OrbArgsError);

impl OrbArgs {
    /// Sets the options in a builder. Those of TLS need a builder with that protocol (`OrbBuilder::protocol`).
    ///
    /// # Errors
    /// [`OrbArgsError`]
    pub fn apply(&self, builder: OrbBuilder) -> Result<OrbBuilder, OrbArgsError> {
        let set = |builder: OrbBuilder, [option, value]: [String; 2]| builder.option(&option, &value);
        let mut options = self.options()?;
        options.sort_by_key(|[option, _]| option != "-ORBProfile"); // as on the command line of an ORB
        Ok(options.into_iter().try_fold(builder, set)?)
    }

    /// The options with their values, those of TLS first.
    ///
    /// # Errors
    /// [`OrbArgsError::Unreadable`]
    pub fn options(&self) -> Result<Vec<[String; 2]>, OrbArgsError> {
        let files = [("-ORBSSLCertificate", &self.cert), ("-ORBSSLKey", &self.key), ("-ORBSSLCA", &self.ca)];
        let mut options = Vec::new();
        for (option, file) in files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?))) {
            let unreadable = |error| OrbArgsError::Unreadable { file: file.clone(), error };
            fs::File::open(file).map_err(unreadable)?;
            options.push([option.to_owned(), file.display().to_string()]);
        }
        options.extend_from_slice(&self.options);
        Ok(options)
    }

    /// Adds an option and its value. One of the command line has precedence.
    #[must_use]
    pub fn with_default(mut self, option: &str, value: &str) -> Self {
        self.options.insert(0, [option.to_owned(), value.to_owned()]);
        self
    }

    /// Whether an option was given by `--orb`.
    #[must_use]
    pub fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// Whether an option was given by this name, by `--orb`.
    #[must_use]
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|[option, _]| option == name)
    }

    /// The file of the certificate (`--cert`).
    #[must_use]
    pub fn certificate(&self) -> Option<&Path> {
        self.cert.as_deref()
    }

    /// The file of the authorities (`--ca`).
    #[must_use]
    pub fn authorities(&self) -> Option<&Path> {
        self.ca.as_deref()
    }
}

/// Divides `-ORBName value` or `-ORBName=value`.
fn split(text: &str) -> Result<[String; 2], &'static str> {
    let text = text.trim();
    let option_end = text.find(|letter: char| letter.is_whitespace() || letter == '=');
    match option_end.map(|end| (&text[..end], text[end + 1..].trim())) {
        Some((option, value)) if option.starts_with("-ORB") && !value.is_empty() => {
            Ok([option.to_owned(), value.to_owned()])
        }
        _ => Err("expected an option and its value, such as `-ORBTransports uds`"),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn an_option_is_split_from_its_value() {
        let joined = |text: &str| split(text).ok().map(|[option, value]| format!("{option}|{value}"));
        assert_eq!(joined("-ORBTransports uds").as_deref(), Some("-ORBTransports|uds"));
        assert_eq!(joined("-ORBInitRef=Bank=corbaloc::a/b").as_deref(), Some("-ORBInitRef|Bank=corbaloc::a/b"));
        assert_eq!(joined("-ORBInitRef Bank=IOR:00").as_deref(), Some("-ORBInitRef|Bank=IOR:00"));
        for text in ["-ORBTransports", "-ORBTransports ", "Transports uds", ""] {
            assert_eq!(joined(text), None, "{text}");
        }
    }
}
