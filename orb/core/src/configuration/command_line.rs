//! Configuration of an ORB by the `-ORB…` options of a command line.

#[cfg(feature = "asynchronous")]
mod asynchronous;
mod general;
mod server;
mod table;
mod values;

pub use general::GENERAL_OPTIONS;
pub use server::SERVER_OPTIONS;
pub use table::OrbOption;
pub use values::InitError;

use crate::OrbBuilder;

impl OrbOption {
    /// The tables of all options, besides those of [protocols](OrbBuilder::protocol) that a program registers.
    #[must_use]
    pub fn tables() -> &'static [&'static [Self]] {
        static TABLES: &[&[OrbOption]] = &[
            GENERAL_OPTIONS,
            #[cfg(feature = "asynchronous")]
            asynchronous::ASYNCHRONOUS_OPTIONS,
            SERVER_OPTIONS,
        ];
        TABLES
    }

    /// The option that is spelled so.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        Self::tables().iter().copied().flatten().find(|option| option.names.contains(&name))
    }
}

impl OrbBuilder {
    /// Removes the `-ORB…` options and their values from a command line; the other arguments belong to the
    /// program.
    ///
    /// [`GENERAL_OPTIONS`] and [`SERVER_OPTIONS`] list the options with their values; [`OrbOption::tables`] has those
    /// of the feature `asynchronous`, too.
    /// [Protocols](Self::protocol) that were registered before have options of their own.
    ///
    /// An initial reference may also follow its option without a space: `-ORBInitRefName=URL` (8.5.1).
    ///
    /// Without the feature `asynchronous`, its options are unknown.
    ///
    /// # Errors
    /// [`InitError`] for an unknown option or an invalid value.
    pub fn take_args(mut self, args: &mut Vec<String>) -> Result<Self, InitError> {
        let mut own = Vec::with_capacity(args.len());
        let mut options = Vec::new();
        let mut rest = std::mem::take(args).into_iter();
        while let Some(arg) = rest.next() {
            if arg.starts_with("-ORB") {
                options.push(match with_value(&arg) {
                    Some((option, value)) => (option.to_owned(), value.to_owned()),
                    None => match rest.next() {
                        Some(value) => (arg, value),
                        None => return Err(InitError::MissingValue(arg)),
                    },
                });
            } else {
                own.push(arg);
            }
        }
        *args = own;
        // A site and a profile set many settings, and each of the other options one of them.
        options.sort_by_key(|(option, _)| order(option));
        for (option, value) in options {
            self = self.option(&option, &value)?;
        }
        Ok(self)
    }

    /// Sets one option as a command line spells it; see [`OrbBuilder::take_args`].
    ///
    /// # Errors
    /// As [`OrbBuilder::take_args`].
    pub fn option(self, option: &str, value: &str) -> Result<Self, InitError> {
        if let Some(row) = OrbOption::find(option) {
            return row.set(self, option, value);
        }
        match self.protocols.option(option, value) {
            Ok(true) => Ok(self),
            Ok(false) => Err(match values::similar_option(option, self.protocols.option_names()) {
                Some(similar) => InitError::MisspeltOption { option: option.to_owned(), similar },
                None => InitError::UnknownOption(option.to_owned()),
            }),
            Err(reason) => Err(InitError::RefusedValue { option: option.to_owned(), value: value.to_owned(), reason }),
        }
    }
}

/// The place of an option among those of one command line, which are set in ascending order.
pub(super) fn order(option: &str) -> u8 {
    match option {
        "-ORBSite" => 0,
        "-ORBProfile" => 1,
        _ => 2,
    }
}

/// Splits an initial reference option from a value without a space in between, the form of older programs.
fn with_value(arg: &str) -> Option<(&str, &str)> {
    let split = |option: &'static str| arg.strip_prefix(option).filter(|value| !value.is_empty());
    ["-ORBInitRef", "-ORBDefaultInitRef"].into_iter().find_map(|option| Some((option, split(option)?)))
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::GiopVersion;
    use spandrel_transport::Endpoint;

    use super::*;
    use crate::OrbProfile;

    fn take(args: &[&str]) -> Result<(OrbBuilder, Vec<String>), InitError> {
        let mut args: Vec<String> = args.iter().map(ToString::to_string).collect();
        OrbBuilder::default().take_args(&mut args).map(|builder| (builder, args))
    }

    #[test]
    fn orb_options_are_removed_from_the_command_line() {
        let (builder, rest) =
            take(&["prog", "-ORBGiopVersion", "1.0", "file", "-ORBendPoint", "giop:tcp:h:1;iiop://:2", "-v"]).unwrap();
        assert_eq!(rest, ["prog", "file", "-v"]);
        assert_eq!(builder.settings.wire.version, GiopVersion::V1_0);
        assert_eq!(builder.server.settings().endpoints, [Endpoint::new("h", 1), Endpoint::new("", 2)]);
    }

    #[test]
    fn caching_options_switch_on_and_off() {
        let wire = |args: &[&str]| take(args).unwrap().0.settings.wire;
        assert!(wire(&[]).caches_requests && wire(&[]).operation_index.is_none());
        assert!(!wire(&["-ORBRequestCaching", "no"]).caches_requests);
        assert!(wire(&["-ORBOperationIndex", "yes"]).operation_index.is_some());
        assert!(take(&["-ORBAdaptiveDemultiplexing", "no"]).is_ok());
    }

    #[test]
    fn a_profile_is_applied_before_the_other_options() {
        let small = take(&["-ORBMaxConnections", "7", "-ORBProfile", "small"]).unwrap().0.server.settings();
        assert_eq!((small.max_connections, small.max_threads, small.evicts_idle), (7, 16, true));
        let builder = OrbBuilder::default().max_connections(7).profile(OrbProfile::Small);
        assert_eq!(builder.server.settings().max_connections, 256, "a method is applied when it is called");
        // The default profile takes back each setting of another one.
        let settings = |builder: OrbBuilder| format!("{builder:?}");
        let default = settings(OrbBuilder::default().profile(OrbProfile::Default));
        for profile in [OrbProfile::Small, OrbProfile::HighConcurrency] {
            let changed = OrbBuilder::default().profile(profile);
            assert_ne!(settings(changed.clone()), default);
            assert_eq!(settings(changed.profile(OrbProfile::Default)), default);
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        assert_eq!(take(&["-ORBNoSuch", "1"]).unwrap_err(), InitError::UnknownOption("-ORBNoSuch".into()));
        for (given, expected) in [
            ("-ORBNoSuch", "`-ORBNoSuch` is not an ORB option: docs/options.md lists the options"),
            ("-ORBInitialRef", "`-ORBInitialRef` is not an ORB option: did you mean `-ORBInitRef`?"),
            ("-ORBRequestTimout", "`-ORBRequestTimout` is not an ORB option: did you mean `-ORBRequestTimeout`?"),
            ("-ORBendpoints", "`-ORBendpoints` is not an ORB option: did you mean `-ORBEndpoint`?"),
            ("-ORBinitref", "`-ORBinitref` is not an ORB option: did you mean `-ORBInitRef`?"),
        ] {
            assert_eq!(take(&[given, "1"]).unwrap_err().to_string(), expected);
        }
        let of_tls = take(&["-ORBSSLCA", "authority.pem"]).unwrap_err().to_string();
        assert!(of_tls.contains("`OrbBuilder::protocol` with `Ssliop`"), "{of_tls}");
        assert_eq!(take(&["-ORBInitRef"]).unwrap_err(), InitError::MissingValue("-ORBInitRef".into()));
        for (option, value) in [
            ("-ORBInitRef", "x"),
            ("-ORBRequestTimeout", "0"),
            ("-ORBGiopVersion", "2.0"),
            ("-ORBByteOrder", "middle"),
            ("-ORBCollocation", "yes"),
            ("-ORBConcurrency", "thread-pool:0"),
            ("-ORBQueueOverflow", "drop"),
            ("-ORBServerIdleTimeout", "0"),
            ("-ORBUseImR", "maybe"),
            ("-ORBMessageTimeout", "never"),
            ("-ORBMaxConnectionRate", "fast"),
            ("-ORBMaxServerMemory", "1G"),
            ("-ORBNativeCharCodeSet", "EBCDIC"),
            ("-ORBRequestCaching", "perhaps"),
            ("-ORBAdaptiveDemultiplexing", "1"),
            ("-ORBOperationIndex", ""),
            ("-ORBMaxMessageSize", "-1"),
            ("-ORBFragmentSize", "on"),
            ("-ORBMaxServiceContexts", "-1"),
            ("-ORBExceptionDetails", "some"),
            ("-ORBTargetAddressing", "name"),
            ("-ORBProfile", "large"),
        ] {
            assert!(matches!(take(&[option, value]).unwrap_err(), InitError::BadValue { .. }), "{option} {value}");
        }
        assert!(matches!(take(&["-ORBendPoint", "x"]).unwrap_err(), InitError::BadEndpoint(_)));
    }

    /// The table of the book for these options.
    fn markdown(options: &[OrbOption]) -> String {
        let mut table = format!("{HEADER}\n| --- | --- | --- | --- |\n");
        for OrbOption { names, value, default, help, page, .. } in options {
            let (first, others) = names.split_first().unwrap();
            let others: Vec<_> = others.iter().map(|name| format!("`{name}`")).collect();
            let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
            let more = if page.is_empty() { String::new() } else { format!(" ({page})") };
            table += &format!("| `{first}`{others} | {value} | {default} | {help}{more} |\n");
        }
        table
    }

    const HEADER: &str = "| option (other spellings) | value | default | what it sets |";

    /// With `UPDATE_GOLDEN=1` the tables are written into the page.
    #[test]
    fn the_tables_of_the_book_are_those_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut parts = page.split(HEADER);
        let mut expected = parts.next().unwrap().to_owned();
        let tables = OrbOption::tables();
        assert_eq!(parts.clone().count(), tables.len(), "tables of options");
        for (options, part) in tables.iter().zip(parts) {
            let rest = part.find("\n\n").expect("a table ends with an empty line");
            expected += &markdown(options);
            expected += &part[rest + 1..];
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, expected).unwrap();
        } else {
            assert!(page == expected, "docs/options.md differs from the tables: UPDATE_GOLDEN=1 writes them");
        }
    }

    #[test]
    fn each_spelling_of_an_option_is_its_own() {
        let options = || OrbOption::tables().iter().copied().flatten();
        let mut names: Vec<_> = options().flat_map(|option| option.names).collect();
        assert!(options().count() > 60 && names.iter().all(|name| name.starts_with("-ORB")));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        let shown = OrbOption::find("-ORBendPoint").unwrap().to_string();
        assert!(shown.starts_with("-ORBListenEndpoints, -ORBListenEndpoint"), "{shown}");
        assert!(shown.ends_with("(endpoints, separated by ;) [default: a port of 127.0.0.1]"), "{shown}");
    }
}
