//! The options of an ORB for programs that read their command line with `clap` (feature `clap`).

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::{
    command_line::order,
    site::{SITE_VARIABLE, Site, SiteError, SiteSetting, reason_of},
};
use crate::{InitError, OrbBuilder};

const HEADING: &str = "Options of the ORB";

/// The options of an ORB, the files of TLS, and a [`Site`] for both, as arguments of a program: `#[command(flatten)]` adds
/// them.
///
/// The command line has precedence over the site, and the site over the program's [defaults](Self::with_default). The
/// site is that of `--site`, else of the environment variable `SPANDREL_SITE`; without either, no file is read. Its file is
/// that of `--config`, else the [default](Site::default_file).
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
    /// A site of spandrel.toml: its references, files of TLS, policy and options, which other options replace
    /// [default: $SPANDREL_SITE, else none]
    #[arg(long, global = true, value_name = "NAME", help_heading = HEADING)]
    site: Option<String>,
    /// The file with the site [default: $SPANDREL_CONFIG, else spandrel/spandrel.toml in $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    config: Option<PathBuf>,
    /// Options of the program, which all others replace.
    #[arg(skip)]
    defaults: Vec<[String; 2]>,
    /// The site, once it has been read.
    #[arg(skip)]
    read_site: OnceLock<Result<Option<Site>, SiteError>>,
}

/// An option of an ORB, its value, and where the value comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OrbSetting {
    /// The option, such as `-ORBRequestTimeout`.
    pub option: String,
    /// The value as a command line has it.
    pub value: String,
    /// The place where the value stands.
    pub source: SettingSource,
}

/// The place where the value of an option stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SettingSource {
    /// The code of the program, before it reads its options.
    Program,
    /// A line of a file of sites, from 1.
    Site {
        /// The path of the file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The command line of the process.
    CommandLine,
}

impl OrbSetting {
    fn new([option, value]: [String; 2], source: SettingSource) -> Self {
        Self { option, value, source }
    }
}

/// The reason why the arguments of a program configure no ORB.
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
    /// The site that `--site` names does not exist, or its file is invalid.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// A file of sites is named, and no site of it.
    #[error("--config {} needs --site NAME, or ${SITE_VARIABLE}", .0.display())]
    NoSite(PathBuf),
}
spandrel_error::debug_as_report!(OrbArgsError);

impl OrbArgs {
    /// Sets the options in a builder. Those of TLS need a builder with that protocol (`OrbBuilder::protocol`).
    ///
    /// # Errors
    /// [`OrbArgsError`]
    pub fn apply(&self, mut builder: OrbBuilder) -> Result<OrbBuilder, OrbArgsError> {
        for [option, value] in in_order(&self.defaults) {
            builder = builder.option(&option, &value)?;
        }
        if let Some(site) = self.site()? {
            for setting in self.site_settings(site) {
                check_file(&setting.option, &setting.value)
                    .map_err(|error| site.error_at(setting, error.to_string()))?;
                builder = site.set(setting, builder)?;
            }
        }
        for [option, value] in self.command_line_options()? {
            builder = builder.option(&option, &value)?;
        }
        Ok(builder)
    }

    /// The settings in the order in which they are set, the last of one option in force: those of the program, of the
    /// site, and of the command line, in each a profile first. `-ORBInitRef` and rules for one peer add to those before.
    ///
    /// # Errors
    /// [`OrbArgsError`]; the values are not examined.
    pub fn settings(&self) -> Result<Vec<OrbSetting>, OrbArgsError> {
        let defaults = in_order(&self.defaults).into_iter().map(|pair| OrbSetting::new(pair, SettingSource::Program));
        let mut settings: Vec<OrbSetting> = defaults.collect();
        if let Some(site) = self.site()? {
            settings.extend(self.site_settings(site).map(|setting| {
                let source = SettingSource::Site { file: site.file().to_owned(), line: setting.line };
                OrbSetting::new([setting.option.clone(), setting.value.clone()], source)
            }));
        }
        settings.extend(
            self.command_line_options()?.into_iter().map(|pair| OrbSetting::new(pair, SettingSource::CommandLine)),
        );
        Ok(settings)
    }

    /// The site in use: that of `--site`, else of the environment variable `SPANDREL_SITE`. Its file is read once.
    ///
    /// # Errors
    /// [`OrbArgsError::Site`], and [`OrbArgsError::NoSite`]
    pub fn site(&self) -> Result<Option<&Site>, OrbArgsError> {
        let Some(name) = self.site_name() else {
            return self.config.as_ref().map_or(Ok(None), |file| Err(OrbArgsError::NoSite(file.clone())));
        };
        let read = || match &self.config {
            Some(file) => Site::read(file, &name),
            None => Site::find(&name),
        };
        let site = self.read_site.get_or_init(|| read().map(Some));
        Ok(site.as_ref().map_err(Clone::clone)?.as_ref())
    }

    fn site_name(&self) -> Option<String> {
        let of_environment = || env::var(SITE_VARIABLE).ok().filter(|name| !name.is_empty());
        self.site.clone().or_else(of_environment)
    }

    /// The file of `--config`, else the [default](Site::default_file).
    #[must_use]
    pub fn site_file(&self) -> Option<PathBuf> {
        self.config.clone().or_else(Site::default_file)
    }

    /// Whether `--config` was given.
    #[must_use]
    pub fn names_file(&self) -> bool {
        self.config.is_some()
    }

    /// The settings of the site without the files of TLS that the command line replaces: these may be missing.
    fn site_settings<'s>(&self, site: &'s Site) -> impl Iterator<Item = &'s SiteSetting> {
        let (has_own_identity, has_own_authorities) = (self.cert.is_some(), self.ca.is_some());
        site.settings().iter().filter(move |setting| match &*setting.option {
            CERTIFICATE | KEY => !has_own_identity,
            AUTHORITIES => !has_own_authorities,
            _ => true,
        })
    }

    /// The options of the command line with their values: those of TLS, a site, a profile, others.
    fn command_line_options(&self) -> Result<Vec<[String; 2]>, OrbArgsError> {
        let files = [(CERTIFICATE, &self.cert), (KEY, &self.key), (AUTHORITIES, &self.ca)];
        let mut options = Vec::new();
        for (option, file) in files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?))) {
            let unreadable = |error| OrbArgsError::Unreadable { file: file.clone(), error };
            fs::File::open(file).map_err(unreadable)?;
            options.push([option.to_owned(), file.display().to_string()]);
        }
        options.extend(in_order(&self.options));
        Ok(options)
    }

    /// Adds an option and its value. One of the site or of the command line has precedence.
    #[must_use]
    pub fn with_default(mut self, option: &str, value: &str) -> Self {
        self.defaults.push([option.to_owned(), value.to_owned()]);
        self
    }

    /// Whether an option was given by `--orb`, or a site was.
    #[must_use]
    pub fn has_options(&self) -> bool {
        !self.options.is_empty() || self.site_name().is_some()
    }

    /// Whether an option was given by this name, by `--orb`.
    #[must_use]
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|[option, _]| option == name)
    }

    /// The file of the certificate (`--cert`, or that of the site).
    ///
    /// # Errors
    /// Those of [`OrbArgs::site`]
    pub fn certificate(&self) -> Result<Option<&Path>, OrbArgsError> {
        self.file(self.cert.as_deref(), CERTIFICATE)
    }

    /// The file of the authorities (`--ca`, or that of the site).
    ///
    /// # Errors
    /// Those of [`OrbArgs::site`]
    pub fn authorities(&self) -> Result<Option<&Path>, OrbArgsError> {
        self.file(self.ca.as_deref(), AUTHORITIES)
    }

    fn file<'s>(&'s self, own_file: Option<&'s Path>, option: &str) -> Result<Option<&'s Path>, OrbArgsError> {
        if own_file.is_some() {
            return Ok(own_file);
        }
        Ok(self.site()?.and_then(|site| site.setting(option)).map(|setting| Path::new(&setting.value)))
    }
}

const CERTIFICATE: &str = "-ORBSSLCertificate";
const KEY: &str = "-ORBSSLKey";
const AUTHORITIES: &str = "-ORBSSLCA";

/// The options in the order in which a command line sets them.
fn in_order(options: &[[String; 2]]) -> Vec<[String; 2]> {
    let mut options = options.to_vec();
    options.sort_by_key(|[option, _]| order(option));
    options
}

/// Refuses a file of TLS that cannot be opened.
fn check_file(option: &str, file: &str) -> io::Result<()> {
    if [CERTIFICATE, KEY, AUTHORITIES].contains(&option) {
        let readable = fs::File::open(file).map(drop);
        readable.map_err(|error| io::Error::other(format!("cannot read {file}: {}", reason_of(&error))))?;
    }
    Ok(())
}

/// Divides `-ORBName value` or `-ORBName=value`.
fn split(text: &str) -> Result<[String; 2], &'static str> {
    let text = text.trim();
    let option_end = text.find(|letter: char| letter.is_whitespace() || letter == '=');
    match option_end.map(|end| (&text[..end], text[end + 1..].trim())) {
        Some(("-ORBSite", _)) => Err("--site NAME names a site"),
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
