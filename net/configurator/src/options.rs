//! The options of ACE's service configurator on a command line.

use std::path::PathBuf;

/// The file that is read without `-f`, if there is one (`ACE_DEFAULT_SVC_CONF`).
const DEFAULT_FILE: &str = "svc.conf";

/// The options that `ACE_Service_Config::open` knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `-f FILE`: the files, in their order.
    pub files: Vec<PathBuf>,
    /// `-S DIRECTIVE`: directives that are carried out before those of the files.
    pub directives: Vec<String>,
    /// `-y`, and not `-n`: services of the program start without a directive.
    pub starts_static_services: bool,
    /// `-b`: the process becomes a daemon.
    pub is_daemon: bool,
    /// `-d`: debug messages are logged.
    pub is_debug: bool,
    /// `-p FILE`: the file for the number of the process.
    pub pid_file: Option<PathBuf>,
    /// `-s NUMBER`: the signal that makes the files be read again; SIGHUP without it.
    pub signal: Option<i32>,
    /// `-k HOST:PORT`: the address of a logging service.
    pub logger_key: Option<String>,
}

/// The reason why the options of a command line cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// An option without its argument.
    #[error("the option -{0} needs an argument")]
    NoArgument(char),
    /// The argument of `-s` is no number of a signal.
    #[error("invalid value \"{0}\" for -s: expected the number of a signal")]
    Signal(String),
    /// The argument of `-k` is no address.
    #[error("invalid value \"{0}\" for -k: expected HOST:PORT")]
    LoggerKey(String),
}

impl Options {
    /// Takes the options out of a command line without the program's name, as `ACE_Service_Config::parse_args` reads them:
    /// options without arguments may be joined (`-bd`), and an argument may follow its option at once (`-fsvc.conf`). Returns
    /// the rest. `--` ends the options.
    ///
    /// # Errors
    /// [`OptionError`].
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<(Self, Vec<String>), OptionError> {
        let (mut options, mut rest) = (Self::default(), Vec::new());
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                rest.extend(arguments);
                break;
            }
            let letters = argument.strip_prefix('-').filter(|letters| {
                letters.starts_with(|first: char| "bdfknpsSy".contains(first)) && !letters.is_empty()
            });
            let Some(letters) = letters else {
                rest.push(argument);
                continue;
            };
            for (position, letter) in letters.char_indices() {
                match letter {
                    'b' => options.is_daemon = true,
                    'd' => options.is_debug = true,
                    'n' => options.starts_static_services = false,
                    'y' => options.starts_static_services = true,
                    'f' | 'k' | 'p' | 's' | 'S' => {
                        let joined = letters[position + 1..].to_owned();
                        let value = if joined.is_empty() { arguments.next() } else { Some(joined) };
                        options.set(letter, value.ok_or(OptionError::NoArgument(letter))?)?;
                        break;
                    }
                    _ => {
                        rest.push(format!("-{}", &letters[position..]));
                        break;
                    }
                }
            }
        }
        Ok((options, rest))
    }

    fn set(&mut self, letter: char, value: String) -> Result<(), OptionError> {
        match letter {
            'f' => self.files.push(value.into()),
            'S' => self.directives.push(value),
            'p' => self.pid_file = Some(value.into()),
            'k' => {
                let address = value.rsplit_once(':').filter(|(host, _)| !host.is_empty());
                if !address.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0)) {
                    return Err(OptionError::LoggerKey(value));
                }
                self.logger_key = Some(value);
            }
            _ => {
                let number = value.parse().ok().filter(|number| (1..=64).contains(number));
                self.signal = Some(number.ok_or(OptionError::Signal(value))?);
            }
        }
        Ok(())
    }

    /// The files to be read: those of `-f`, or `svc.conf` of the current folder if there is one
    /// (`ACE_Service_Gestalt::open_i`; `parse_args_i` leaves it out after `-f`).
    #[must_use]
    pub fn configuration_files(&self) -> Vec<PathBuf> {
        if self.files.is_empty() && PathBuf::from(DEFAULT_FILE).is_file() {
            return vec![DEFAULT_FILE.into()];
        }
        self.files.clone()
    }
}
