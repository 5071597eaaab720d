//! Sites: named configurations of an ORB in one file, `spandrel.toml` (feature `site`).
//!
//! The language of the file is in [`text`]. Nothing is read unless a program or its user names a site.

mod text;

use std::{
    env, fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use spandrel_error::{closest, excerpt};

use crate::{InitError, OrbBuilder};

/// The environment variable with the path of the file of sites.
const FILE_VARIABLE: &str = "SPANDREL_CONFIG";
/// The environment variable with the name of a site, for programs with `OrbArgs`.
#[cfg(feature = "clap")]
pub(super) const SITE_VARIABLE: &str = "SPANDREL_SITE";

/// The largest file of sites that is read, in octets.
const MAX_OCTETS: u64 = 1 << 20;

/// A named configuration of an ORB: initial references, files of TLS, a policy, and options.
///
/// It comes from a file of sites in the language TOML, by default `spandrel/spandrel.toml` in the user's folder of
/// configuration:
///
/// ```toml
/// [sites.plant]
/// ca = "authority.pem"        # -ORBSSLCA; relative paths begin at the folder of this file
/// cert = "operator.pem"       # -ORBSSLCertificate
/// key = "operator.key"        # -ORBSSLKey
/// policy = "policy.toml"      # of services: --policy
/// audit = "audit.jsonl"       # of services: --audit
///
/// [sites.plant.references]    # -ORBInitRef
/// NameService = "corbaloc:ssliop:names.plant.example:2809/NameService"
///
/// [sites.plant.options]       # any other option of an ORB
/// -ORBRequestTimeout = 5000
/// -ORBSSLPlain = "never"
/// ```
///
/// The value of an option is a text, a whole number, `true` or `false` for `yes` or `no`, or a list of these, each of
/// which is set in turn.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod options { pub use spandrel_orb::Site; } }
/// use spandrel::{Orb, options::Site};
///
/// # let folder = std::env::temp_dir().join(format!("spandrel-site-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let file = folder.join("spandrel.toml");
/// std::fs::write(&file, "[sites.plant.options]\n-ORBRequestTimeout = 5000\n")?;
///
/// let orb = Orb::builder().site(&Site::read(&file, "plant")?)?.build()?;
///
/// let absent = Site::read(&file, "plan").unwrap_err();
/// assert!(absent.to_string().ends_with("it has no site `plan`: did you mean `plant`?"));
/// # orb.shutdown()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Site {
    name: String,
    file: PathBuf,
    settings: Vec<SiteSetting>,
    policy: Option<SiteSetting>,
    audit: Option<SiteSetting>,
}

/// A value of a site, with its line in the file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SiteSetting {
    /// The option of an ORB that it sets, such as `-ORBInitRef`; `--policy` or `--audit` for the files of services.
    pub option: String,
    /// The value as a command line has it. Paths are those of the system: the folder of the file is before them.
    pub value: String,
    /// The line of the value, from 1.
    pub line: usize,
    /// The column of the value in its line, from 1, in characters.
    pub column: usize,
}

/// A fault in a file of sites, with its line, or a site that it does not have.
#[derive(Clone, Eq, PartialEq)]
pub struct SiteError {
    file: PathBuf,
    /// The line and the column, from 1; `None` if the reason is the whole file.
    position: Option<(usize, usize)>,
    reason: String,
    /// The error of the option that does not take the value.
    source: Option<Box<InitError>>,
}
spandrel_error::debug_as_report!(SiteError);

impl SiteError {
    fn of_file(file: &Path, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), position: None, reason: reason.into(), source: None }
    }

    /// The file of sites that has the fault.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The line and the column of the error, from 1; `None` if the reason is the whole file.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        self.position
    }
}

impl fmt::Display for SiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use {}", self.file.display())?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for SiteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|error| &**error as _)
    }
}

impl Site {
    /// The site with this name in the default file ([`Site::default_file`]).
    ///
    /// # Errors
    /// As [`Site::read`], and an environment without a default file.
    pub fn find(name: &str) -> Result<Self, SiteError> {
        let file = Self::default_file().ok_or_else(|| {
            let reason = format!("the environment names no folder of configuration; ${FILE_VARIABLE} names the file");
            SiteError::of_file(Path::new("spandrel.toml"), reason)
        })?;
        Self::read(&file, name)
    }

    /// The site with this name in a file.
    ///
    /// # Errors
    /// [`SiteError`]: a file that cannot be read, is no regular file, has more than a mebibyte, or can be written by every
    /// user of the system; text of another form, with its line and column; no such site.
    pub fn read(file: &Path, name: &str) -> Result<Self, SiteError> {
        let mut sites = Self::all(file)?;
        match sites.iter().position(|site| site.name == name) {
            Some(nth) => Ok(sites.swap_remove(nth)),
            None => {
                let name = excerpt(name);
                let names = || sites.iter().map(|site| &*site.name);
                let hint = Some(did_you_mean(&name.to_string(), names())).filter(|hint| !hint.is_empty());
                let hint = hint.unwrap_or_else(|| listed(names()));
                Err(SiteError::of_file(file, format!("it has no site `{name}`{hint}")))
            }
        }
    }

    /// All sites of a file, in the order of the file.
    ///
    /// # Errors
    /// As [`Site::read`].
    pub fn all(file: &Path) -> Result<Vec<Self>, SiteError> {
        let content = content(file).map_err(|error| SiteError::of_file(file, reason_of(&error)))?;
        text::parse(&content, file)
    }

    /// The file of sites by the environment: `$SPANDREL_CONFIG`; else `spandrel/spandrel.toml` in `$XDG_CONFIG_HOME`, or in
    /// `.config` of the home folder (Windows: `spandrel\spandrel.toml` in `%APPDATA%`). It need not exist.
    #[must_use]
    pub fn default_file() -> Option<PathBuf> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = || {
            if cfg!(windows) {
                return variable("APPDATA");
            }
            // The specification of the folders ignores relative paths.
            let folder = variable("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
            folder.or_else(|| Some(variable("HOME")?.join(".config")))
        };
        variable(FILE_VARIABLE).or_else(|| Some(folder()?.join("spandrel").join("spandrel.toml")))
    }

    /// The site of the option `-ORBSite`: a name, or a file and a name as `FILE#NAME`.
    pub(super) fn of_option(value: &str) -> Result<Self, SiteError> {
        match value.rsplit_once('#') {
            Some((file, name)) => Self::read(Path::new(file), name),
            None => Self::find(value),
        }
    }

    /// The name by which the file has it, such as `plant` for `[sites.plant]`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that it was read from.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The options of the ORB, in the order in which they are set: a profile first, then that of the file.
    #[must_use]
    pub fn settings(&self) -> &[SiteSetting] {
        &self.settings
    }

    /// The policy file that services of this site use when they have no option `--policy`.
    #[must_use]
    pub fn policy(&self) -> Option<&SiteSetting> {
        self.policy.as_ref()
    }

    /// The file to which services of this site write the decisions of their policy.
    #[must_use]
    pub fn audit(&self) -> Option<&SiteSetting> {
        self.audit.as_ref()
    }

    /// The setting of an option of the ORB, the last one if there are several.
    #[cfg(feature = "clap")]
    pub(super) fn setting(&self, option: &str) -> Option<&SiteSetting> {
        self.settings.iter().rev().find(|setting| setting.option == option)
    }

    /// An error at the line and column of a setting.
    pub(super) fn error_at(&self, setting: &SiteSetting, reason: impl Into<String>) -> SiteError {
        let position = Some((setting.line, setting.column));
        SiteError { position, ..SiteError::of_file(&self.file, reason) }
    }

    /// Sets one of the options in a builder.
    pub(super) fn set(&self, setting: &SiteSetting, builder: OrbBuilder) -> Result<OrbBuilder, SiteError> {
        builder.option(&setting.option, &setting.value).map_err(|error| {
            let reason = format!("`{}` cannot be set", setting.option);
            SiteError { source: Some(Box::new(error)), ..self.error_at(setting, reason) }
        })
    }
}

impl OrbBuilder {
    /// Sets the options, the initial references and the files of TLS of a site. Later calls of the builder, and options
    /// of a command line, replace them.
    ///
    /// Files of TLS need a builder with that [protocol](Self::protocol).
    ///
    /// # Errors
    /// [`SiteError`], with the line of the option that is unknown or does not take the value.
    pub fn site(self, site: &Site) -> Result<Self, SiteError> {
        site.settings.iter().try_fold(self, |builder, setting| site.set(setting, builder))
    }
}

/// `: did you mean …?`, if one of the names is equal or near enough.
fn did_you_mean<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> String {
    let candidates: Vec<&str> = candidates.collect();
    let equal = candidates.iter().copied().find(|candidate| *candidate == name);
    let hint = |best: &str| format!(": did you mean `{}`?", excerpt(best));
    equal.or_else(|| closest(name, candidates)).map_or_else(String::new, hint)
}

/// `: its sites are …` with the first names of a file.
fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const MAX_LISTED: usize = 8;
    let further = names.len().saturating_sub(MAX_LISTED);
    let names: Vec<_> = names.take(MAX_LISTED).map(|name| format!("`{}`", excerpt(name))).collect();
    match further {
        _ if names.is_empty() => ": it has none".to_owned(),
        0 => format!(": its sites are {}", names.join(", ")),
        _ => format!(": its sites are {} and {further} more", names.join(", ")),
    }
}

/// The text of a file of bounded length.
fn content(file: &Path) -> io::Result<String> {
    // A pipe or a device would be opened without an end.
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let opened = fs::File::open(file)?;
    refuse_foreign_writers(&opened.metadata()?)?;
    let mut content = Vec::new();
    opened.take(MAX_OCTETS + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_OCTETS {
        return Err(io::Error::other("it has more than a mebibyte"));
    }
    String::from_utf8(content).map_err(|_| io::Error::other("it is no UTF-8"))
}

/// Refuses a file that users other than its owner may write: it decides which keys, authorities and policies are used.
#[cfg(unix)]
fn refuse_foreign_writers(metadata: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o777;
    let writers = match (mode & 0o020 != 0, mode & 0o002 != 0) {
        (false, false) => return Ok(()),
        (true, false) => "its group",
        (_, true) => "all users",
    };
    Err(io::Error::other(format!("{writers} may write it (mode {mode:03o}): chmod go-w permits the owner alone")))
}

#[cfg(not(unix))]
fn refuse_foreign_writers(_: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// The text of an error of the system without its number.
pub(super) fn reason_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests;
